#include <doctest/doctest.h>

#include <string>

#include "data_floor/small_tokenizer.h"
#include "support/expect_error.h"

namespace loongforge::data {
namespace {

std::vector<Prompt> load(const std::string& bytes, const PromptStyle& style, const Tokenizer& t,
                         const char* name = "prompts.txt") {
  const test::TempDir folder;
  test::write_file(folder / name, bytes);
  return load_prompts(folder / name, style, t);
}

TEST_CASE("one prompt a line, with the generation prompt of the chat template") {
  const Tokenizer t = test::make_tokenizer({.adds_bos = true});
  const ChatTemplate chat = test::make_chat(test::kChatMl);
  const auto prompts = load("What?\r\n\n[1] {x}\n", {.chat = &chat}, t);
  REQUIRE(prompts.size() == 2);
  CHECK(prompts[0].text == "What?");
  // Nothing is added to what the template says.
  CHECK(prompts[0].ids ==
        t.encode("<|im_start|>user\nWhat?<|im_end|>\n<|im_start|>assistant\n", false));
  CHECK(prompts[1].text == "[1] {x}");
}

TEST_CASE("JSON lines of prompts and of messages") {
  const Tokenizer t = test::make_tokenizer();
  const ChatTemplate chat = test::make_chat(test::kChatMl);
  const std::string bytes =
      R"({"prompt":"a\nb"})"
      "\n"
      R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]})";
  for (const char* name : {"p.jsonl", "p.txt"}) {
    const auto prompts = load(bytes, {.chat = &chat}, t, name);
    REQUIRE(prompts.size() == 2);
    CHECK(prompts[0].text == "a\nb");
    CHECK(prompts[1].text == "u");
    CHECK(
        t.decode(prompts[1].ids, false) ==
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n");
  }
}

TEST_CASE("a plain template: BOS by the tokenizer's rule, eos after earlier answers only") {
  const Tokenizer t = test::make_tokenizer({.adds_bos = true});
  const auto one = load("Add.\n", {}, t);
  CHECK(t.decode(one[0].ids, false) ==
        "<s>Below is an instruction that describes a task. Write a response that appropriately "
        "completes the request.\n\n### Instruction:\nAdd.\n\n### Response:\n");
  const auto two =
      load(R"({"messages":[{"role":"system","content":"S"},{"role":"user","content":"q"},)"
           R"({"role":"assistant","content":"a"},{"role":"user","content":"r"}]})",
           {}, t);
  CHECK(two[0].text == "r");
  CHECK(t.decode(two[0].ids, false) ==
        "<s>S\n\n### Instruction:\nq\n\n### Response:\na</s>\n\n### Instruction:\nr\n\n### "
        "Response:\n");
}

TEST_CASE("prompts that are wrong") {
  const Tokenizer t = test::make_tokenizer();
  const auto bad = [&](const char* bytes, const char* name, const char* text) {
    LF_CHECK_ERROR(load(bytes, {}, t, name), ErrorCode::kBadData, text);
  };
  bad("", "p.txt", "p.txt: the file is empty");
  bad("\n \n", "p.txt", "nothing but white space");
  bad("{\"prompt\":\"a\"}\n{\"prompt\":\n", "p.txt", "p.txt:2: invalid JSON");
  bad("{\"prompt\":\n", "p.jsonl", "p.jsonl:1: invalid JSON");
  bad("{\"prompt\":\" \"}\n", "p.jsonl", "p.jsonl:1: the prompt is empty");
  bad("{\"prompt\":7}\n", "p.jsonl", "p.jsonl:1: \"prompt\" is integer");
  bad("{\"question\":\"a\"}\n", "p.jsonl", "p.jsonl:1: the record has neither");
  bad("{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":"
      "\"a\"}]}",
      "p.jsonl", "p.jsonl:1: the last message is the assistant's");
  bad("a \xFF\n", "p.txt", "p.txt:1: byte 3 is not valid UTF-8");
  LF_CHECK_ERROR(load_prompts("/nonexistent/prompts", {}, t), ErrorCode::kNoInput, "prompts");
  LF_CHECK_ERROR(load("a\n", {.name = "vicuna"}, t), ErrorCode::kUsage, "known templates: alpaca");
}

}  // namespace
}  // namespace loongforge::data
