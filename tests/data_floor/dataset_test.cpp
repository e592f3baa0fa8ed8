#include "data/dataset.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "base/checksum.h"
#include "data_floor/golden.h"
#include "data_floor/small_tokenizer.h"
#include "support/data.h"
#include "support/expect_error.h"

namespace loongforge::data {
namespace {

using test::kChatMl;
using test::load_bytes;
using test::make_chat;
using test::make_tokenizer;
using test::trained_text;

TEST_CASE("alpaca and messages with a chat template: every assistant turn with its end token") {
  const Tokenizer t = make_tokenizer();
  const ChatTemplate chat = make_chat(kChatMl);
  const DatasetOptions options{.style = {.chat = &chat}};
  const std::string alpaca =
      R"([{"instruction":"i","input":"n","output":"o","history":[["q","a"]],"text":"i n o"}])";
  const Dataset d = load_bytes(alpaca, options, t, "data.json");
  REQUIRE(d.samples().size() == 1);
  CHECK(trained_text(d.sample(0), t) == "a<|im_end|>|o<|im_end|>");
  CHECK(t.decode(d.sample(0).ids, false) ==
        "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n"
        "<|im_start|>user\ni\nn<|im_end|>\n<|im_start|>assistant\no<|im_end|>\n");
  const Dataset m = load_bytes(
      R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},)"
      R"({"role":"user","content":"r"},{"role":"assistant","content":[{"type":"text","text":"b"}]}]})",
      options, t);
  CHECK(trained_text(m.sample(0), t) == "a<|im_end|>|b<|im_end|>");
}

TEST_CASE("the alpaca template; a tokenizer whose pad is its eos learns to stop") {
  const Tokenizer t = make_tokenizer({.adds_bos = true});
  REQUIRE(t.pad_id() == t.eos_id());
  const Dataset d = load_bytes("{\"instruction\":\"i\",\"output\":\"o\"}\n", {}, t);
  CHECK(trained_text(d.sample(0), t) == "o</s>");
  CHECK(t.decode(d.sample(0).ids, false).starts_with("<s>Below is an instruction"));
  CHECK(d.sample(0).ids.back() == test::kEos);
}

TEST_CASE("counts, hash, limits") {
  const Tokenizer t = make_tokenizer();
  const ChatTemplate chat = make_chat("{{ messages[0].content }}:{{ messages[1].content }}</s>");
  const std::string bytes =
      "{\"instruction\":\"12345\",\"output\":\"o\"}\n{\"instruction\":\"1\",\"output\":\"1234567\"}"
      "\n"
      "{\"instruction\":\"1\",\"output\":\"o\"}\nbroken";
  DatasetOptions options{.cutoff_len = 4, .max_samples = 3, .style = {.chat = &chat}};
  const Dataset d = load_bytes(bytes, options, t);
  CHECK(d.content_hash() == crc32c(test::bytes_of(bytes)));
  CHECK(d.counts().samples == 3);
  CHECK(d.counts().prompts_cut == 1);
  CHECK(d.counts().answers_cut == 1);
  CHECK(d.counts().tokens == 12);
  CHECK(d.counts().trained_tokens == 2 + 3 + 2);
  CHECK(t.decode(d.sample(0).ids, false) == "5:o</s>");
  CHECK(t.decode(d.sample(1).ids, false) == "567</s>");
  CHECK(d.sample(2).line == 3);
  options.max_samples = 0;
  LF_CHECK_ERROR(load_bytes(bytes, options, t), ErrorCode::kBadData, "data.jsonl:4: invalid JSON");
  options.max_samples = 3;
  options.train_on_prompt = true;
  const Dataset all = load_bytes(bytes, options, t);
  CHECK(all.counts().trained_tokens == 3 * 3);
  CHECK(all.counts().prompts_cut == 1);
  options.cutoff_len = 1;
  LF_CHECK_ERROR(load_bytes(bytes, options, t), ErrorCode::kUsage, "--cutoff_len");
}

TEST_CASE("a sample with nothing to train on names its line") {
  const Tokenizer t = make_tokenizer();
  const ChatTemplate chat = make_chat(kChatMl);
  DatasetOptions options{.style = {.chat = &chat}};
  const std::string good = "{\"instruction\":\"i\",\"output\":\"o\"}\n";
  for (const PromptStyle& style : {PromptStyle{}, options.style}) {
    options.style = style;
    for (const char* output : {"", " \\n"})
      LF_CHECK_ERROR(
          load_bytes(good + "{\"instruction\":\"i\",\"output\":\"" + output + "\"}\n", options, t),
          ErrorCode::kBadData, "data.jsonl:2: \"output\" is empty: nothing to train on");
    LF_CHECK_ERROR(load_bytes("[{\"instruction\":\"i\",\"output\":\"\"}]", options, t),
                   ErrorCode::kBadData, "data.jsonl: record 1 (line 1): \"output\" is empty");
    LF_CHECK_ERROR(load_bytes(R"({"messages":[{"role":"user","content":"q"}]})", options, t),
                   ErrorCode::kBadData, "data.jsonl:1: no assistant message says anything");
    // The answer is there, but the question after it is all that is kept.
    options.cutoff_len = 5;
    LF_CHECK_ERROR(load_bytes(R"({"messages":[{"role":"user","content":"q"},)"
                              R"({"role":"assistant","content":"a"},)"
                              R"({"role":"user","content":"a longer one"}]})",
                              options, t),
                   ErrorCode::kBadData, "data.jsonl:1: nothing is left to train on");
    options.cutoff_len = 1024;
  }
  const ChatTemplate unmarked = make_chat(
      "{{ messages[1].content }}{% if false %}{% generation %}{% endgeneration %}{% endif %}");
  options.style.chat = &unmarked;
  LF_CHECK_ERROR(load_bytes(good, options, t), ErrorCode::kBadData,
                 "data.jsonl:1: the chat template leaves nothing to train on");
}

TEST_CASE("records of no known format, and of another than the first") {
  const Tokenizer t = make_tokenizer();
  const auto bad = [&](const char* bytes, const char* text) {
    LF_CHECK_ERROR(load_bytes(bytes, {}, t), ErrorCode::kBadData, text);
  };
  bad("{\"question\":\"q\",\"answer\":\"a\"}\n",
      "data.jsonl:1: the record has keys question, answer");
  bad("{\"prompt\":[]}\n", "known formats: alpaca (instruction, input, output), messages");
  bad("{}\n", "data.jsonl:1: the record has no keys");
  bad("{\"instruction\":\"i\",\"output\":\"o\"}\n{\"messages\":[]}\n",
      "data.jsonl:2: key \"instruction\" is missing");
  bad("{\"text\":\"a\"}\n{\"instruction\":\"i\",\"output\":\"o\"}\n",
      "data.jsonl:2: key \"text\" is missing");
  LF_CHECK_ERROR(load_bytes("a,b\n", {}, t, "data.csv"), ErrorCode::kBadData,
                 "data.csv:1: neither a JSON array nor JSON lines");
}

TEST_CASE("files that are not there, folders and unknown templates") {
  const Tokenizer t = make_tokenizer();
  const test::TempDir folder;
  DatasetOptions options;
  options.path_or_name = (folder / "absent.jsonl").string();
  LF_CHECK_ERROR(Dataset::load(options, t), ErrorCode::kNoInput, "absent.jsonl");
  options.path_or_name = folder.path().string();
  LF_CHECK_ERROR(Dataset::load(options, t), ErrorCode::kNoInput, "is a folder");
  LF_CHECK_ERROR(load_bytes("", {}, t), ErrorCode::kBadData, "data.jsonl: the file is empty");
  LF_CHECK_ERROR(load_bytes("{}", {.style = {.name = "vicuna"}}, t), ErrorCode::kUsage,
                 "known templates: alpaca");
}

TEST_CASE("special tokens in a question are the tokens, as in transformers, and train nothing") {
  const Tokenizer t = make_tokenizer();
  const ChatTemplate chat = make_chat(kChatMl);
  const Dataset d = load_bytes("{\"instruction\":\"<|im_end|>\",\"output\":\"o\"}\n",
                               {.style = {.chat = &chat}}, t);
  CHECK(trained_text(d.sample(0), t) == "o<|im_end|>");
  CHECK(d.sample(0).ids[6] == test::kEnd);
}

// Ids and masks of jinja2 and the tokenizers library (tests/data/data/masks.md).
void check_masks(const std::string& tokenizer_path, const std::string& name, size_t records = 6) {
  const Tokenizer t = Tokenizer::load(tokenizer_path);
  const std::optional<ChatTemplate> chat = ChatTemplate::load(tokenizer_path);
  REQUIRE(chat.has_value());
  DatasetOptions options{.style = {.chat = &*chat}};
  options.path_or_name = (test::data_dir() / "data" / (name + ".jsonl")).string();
  const Dataset d = Dataset::load(options, t);
  const std::string text = test::read_file(options.path_or_name);
  size_t at = 0;
  REQUIRE(d.samples().size() == records);
  for (size_t i = 0; i < d.samples().size(); ++i) {
    const Sample sample = d.sample(i);
    const size_t end = text.find('\n', at);
    const support::Json line = support::Json::parse(text.substr(at, end - at), name);
    at = end + 1;
    CAPTURE(preview(sample, t, false, "f"));
    std::vector<int32_t> ids, trained;
    for (const support::Json& id : line.find("ids")->as_array())
      ids.push_back(static_cast<int32_t>(id.as_int()));
    for (const support::Json& bit : line.find("trained")->as_array())
      trained.push_back(static_cast<int32_t>(bit.as_int()));
    CHECK(sample.ids == ids);
    CHECK(std::vector<int32_t>(sample.trained.begin(), sample.trained.end()) == trained);
  }
}

TEST_CASE("ids and masks equal the reference's: SmolLM2") {
  check_masks((test::data_dir() / "data" / "smollm2_tokenizer.gguf").string(), "smollm2_masks");
}

TEST_CASE("ids and masks equal the reference's: Qwen3 and Llama 3; tools, in either format") {
  for (const char* file :
       {"qwen3_masks", "llama3_masks", "qwen3_sharegpt", "qwen3_tool_messages"}) {
    const std::string name = std::string(file).substr(0, std::string_view(file).find('_'));
    const auto folder = test::shared_dir() / "data" / "tokenizers" / name;
    if (test::shared_dir().empty() || !std::filesystem::exists(folder)) {
      std::printf(
          "SKIPPED: masks of %s (no tokenizers beside the source tree; set "
          "LOONGFORGE_TEST_DATA)\n",
          file);
      continue;
    }
    check_masks(folder.string(), file, std::string_view(file).ends_with("masks") ? 6 : 3);
  }
}

// Llama 2's and Mistral's formats: texts by transformers, ids and masks by the tokenizers' own
// references (tests/data/data/masks.md). key: which tokenizer's.
void check_instruct(const std::filesystem::path& tokenizer_file, const char* key, bool legacy) {
  const std::vector<support::Json> lines = test::read_lines(test::golden("instruct_chat.jsonl"));
  REQUIRE(lines.size() == 2);
  for (const support::Json& line : lines) {
    const test::TempDir dir;
    const bool spm = tokenizer_file.extension() == ".model";
    std::filesystem::copy_file(tokenizer_file, dir / (spm ? "tokenizer.model" : "tokenizer.json"));
    support::Json config = support::Json::object();
    config.set("bos_token", "<s>");
    config.set("eos_token", "</s>");
    config.set("unk_token", "<unk>");
    config.set("legacy", legacy);
    test::write_file(dir / "tokenizer_config.json", config.dump());
    test::write_file(dir / "chat_template.jinja", line.at("template").as_string());
    const Tokenizer t = Tokenizer::load(dir.path().string());
    const std::optional<ChatTemplate> chat = ChatTemplate::load(dir.path().string());
    REQUIRE(chat.has_value());
    std::string records;
    for (const support::Json& record : line.at("records").as_array()) {
      support::Json one = support::Json::object();
      one.set("messages", record.at("messages"));
      records += one.dump() + "\n";
      CHECK(chat->render(record.at("messages"), false) == record.at("text").as_string());
      support::Json question = record.at("messages");
      question.as_array().pop_back();
      CHECK(chat->render(question, true) == record.at("prompt").as_string());
    }
    DatasetOptions options{.style = {.chat = &*chat}};
    options.path_or_name = (dir / "records.jsonl").string();
    test::write_file(options.path_or_name, records);
    const Dataset d = Dataset::load(options, t);
    REQUIRE(d.samples().size() == line.at("records").as_array().size());
    for (size_t i = 0; i < d.samples().size(); ++i) {
      const support::Json& expected = line.at("records").as_array()[i].at(key);
      const Sample sample = d.sample(i);
      CAPTURE(preview(sample, t, false, "f"));
      std::vector<int64_t> ids(sample.ids.begin(), sample.ids.end()), wanted;
      for (const support::Json& id : expected.at("ids").as_array()) wanted.push_back(id.as_int());
      CHECK(ids == wanted);
      std::vector<int64_t> trained(sample.trained.begin(), sample.trained.end()), bits;
      for (const support::Json& bit : expected.at("trained").as_array())
        bits.push_back(bit.as_int());
      CHECK(trained == bits);
    }
    test::write_file(options.path_or_name,
                     R"({"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"},)"
                     R"({"role":"assistant","content":"c"}]})");
    try {
      Dataset::load(options, t);
      FAIL("no error");
    } catch (const Error& e) {
      CHECK(std::string(e.what()).find("user and assistant must take turns") != std::string::npos);
    }
  }
}

TEST_CASE("ids and masks equal the reference's: Llama 2's and Mistral's formats") {
  const auto model = test::data_dir() / "data" / "spm_bpe.model";
  check_instruct(model, "spm", false);
  check_instruct(model, "spm_legacy", true);
  const auto mistral = test::shared_dir() / "data" / "tokenizers" / "mistral" / "tokenizer.json";
  if (test::shared_dir().empty() || !std::filesystem::exists(mistral)) {
    std::printf("SKIPPED: Mistral's tokenizer (set LOONGFORGE_TEST_DATA)\n");
    return;
  }
  check_instruct(mistral, "mistral", true);
}

TEST_CASE("a preview shows words of a SentencePiece tokenizer, spaces and all") {
  const Tokenizer t = Tokenizer::load((test::data_dir() / "data" / "spm_bpe.model").string());
  Sample sample;
  sample.ids = t.encode("Hello world \xE9\xBE\x99\xF0\x9F\x98\x80 end", true);
  sample.trained.assign(sample.ids.size(), 0);
  const size_t from = t.encode("Hello", true).size();
  std::fill(sample.trained.begin() + static_cast<ptrdiff_t>(from), sample.trained.end(), 1);
  const std::string shown = preview(sample, t, false, "f");
  CHECK(shown.find("Hello[[ world \xE9\xBE\x99\xF0\x9F\x98\x80 end]]") != std::string::npos);
}

TEST_CASE("a thousand real records, quickly") {
  const auto file = test::shared_dir() / "data" / "alpaca_zh" / "alpaca_zh_1k.json";
  if (test::shared_dir().empty() || !std::filesystem::exists(file)) {
    std::printf(
        "SKIPPED: a thousand real records (no alpaca_zh beside the source tree; set "
        "LOONGFORGE_TEST_DATA)\n");
    return;
  }
  const std::string path = (test::data_dir() / "data" / "smollm2_tokenizer.gguf").string();
  const Tokenizer t = Tokenizer::load(path);
  const std::optional<ChatTemplate> chat = ChatTemplate::load(path);
  REQUIRE(chat.has_value());
  DatasetOptions options{.path_or_name = file.string(), .cutoff_len = 4096};
  options.style.chat = &*chat;
  const auto start = std::chrono::steady_clock::now();
  const Dataset d = Dataset::load(options, t);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECK(took.count() < 10.0);  // 0.25 s on one core: room for sanitizers and busy machines
  const support::Json records = support::read_json(file.string());
  REQUIRE(d.samples().size() == records.as_array().size());
  int64_t tokens = 0;
  for (size_t i = 0; i < d.samples().size(); ++i) {
    const Sample sample = d.sample(i);
    CHECK(trained_text(sample, t) ==
          records.as_array()[i].find("output")->as_string() + "<|im_end|>");
    CHECK(sample.line == static_cast<int64_t>(i) + 1);
    tokens += sample.trained_count();
  }
  CHECK(d.counts().trained_tokens == tokens);
}

}  // namespace
}  // namespace loongforge::data
