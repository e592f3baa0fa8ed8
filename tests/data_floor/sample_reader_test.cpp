#include "data/sample_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "data_floor/small_tokenizer.h"
#include "support/expect_error.h"

namespace loongforge::data {
namespace {

using test::kChatMl;
using test::load_bytes;
using test::make_chat;
using test::make_tokenizer;
using test::trained_text;

std::vector<std::string> texts_of(const std::string& bytes, const DatasetOptions& options,
                                  const char* name, bool adds_bos = false) {
  const Tokenizer t = make_tokenizer({.adds_bos = adds_bos});
  const Dataset d = load_bytes(bytes, options, t, name);
  std::vector<std::string> texts;
  for (size_t i = 0; i < d.samples().size(); ++i)
    texts.push_back(std::to_string(d.sample(i).line) + ":" + t.decode(d.sample(i).ids, false));
  return texts;
}

using Texts = std::vector<std::string>;

TEST_CASE("text: a record, a paragraph or a line is a sample") {
  const std::string txt = "a\nb\n\n \t\nc\r\n\r\nd\n";
  CHECK(texts_of(txt, {}, "d.txt") == Texts{"1:a\nb</s>", "5:c</s>", "7:d</s>"});
  CHECK(texts_of(txt, {.text_chunks = TextChunks::kParagraph}, "d.txt") ==
        Texts{"1:a\nb</s>", "5:c</s>", "7:d</s>"});
  CHECK(texts_of(txt, {.text_chunks = TextChunks::kLine}, "d.txt") ==
        Texts{"1:a</s>", "2:b</s>", "5:c</s>", "7:d</s>"});
  const std::string json = "{\"text\":\"a\\nb\\n \\n\\nc\\r\\n\"}\n{\"text\":\"\\n\\nd\"}\n";
  CHECK(texts_of(json, {}, "d.jsonl") == Texts{"1:a\nb\n \n\nc\r\n</s>", "2:\n\nd</s>"});
  CHECK(texts_of(json, {.text_chunks = TextChunks::kParagraph}, "d.jsonl") ==
        Texts{"1:a\nb</s>", "1:c</s>", "2:d</s>"});
  CHECK(texts_of(json, {.text_chunks = TextChunks::kLine}, "d.jsonl") ==
        Texts{"1:a</s>", "1:b</s>", "1:c</s>", "2:d</s>"});
  CHECK(texts_of(json, {.max_samples = 2, .text_chunks = TextChunks::kLine}, "d.jsonl") ==
        Texts{"1:a</s>", "1:b</s>"});
}

TEST_CASE("packed text: pieces of cutoff_len, every document ended, nothing lost") {
  const std::string json =
      "{\"text\":\"abc\"}\n{\"text\":\"d\"}\n{\"text\":\"efghijklmn\"}\n{\"text\":\"o\"}\n";
  const DatasetOptions options{.cutoff_len = 4, .text_chunks = TextChunks::kPacked};
  CHECK(texts_of(json, options, "d.jsonl") ==
        Texts{"1:abc</s>", "2:d</s>ef", "3:ghij", "3:klmn", "3:</s>o</s>"});
  CHECK(texts_of(json, options, "d.jsonl", true) ==
        Texts{"1:<s>abc", "1:</s><s>d</s>", "3:<s>efg", "3:hijk", "3:lmn</s>", "4:<s>o</s>"});
  CHECK(texts_of("ab\n\nc\n", options, "d.txt") == Texts{"1:ab</s>c"});  // one eos teaches nothing
}

TEST_CASE("packed text: all that follows something in its piece is learnt, but never BOS") {
  const Tokenizer t = make_tokenizer({.adds_bos = true});
  const std::string json = "{\"text\":\"a\"}\n{\"text\":\"bcd\"}\n";
  const Dataset d = load_bytes(json, {.cutoff_len = 5, .text_chunks = TextChunks::kPacked}, t);
  REQUIRE(d.samples().size() == 2);
  CHECK(t.decode(d.sample(0).ids, false) == "<s>a</s><s>b");
  CHECK(d.sample(0).trained == std::vector<uint8_t>{0, 1, 1, 0, 1});
  CHECK(d.sample(1).trained == std::vector<uint8_t>{0, 1, 1});
  const Dataset bare =
      load_bytes(json, {.cutoff_len = 5, .text_chunks = TextChunks::kPacked}, make_tokenizer());
  CHECK(bare.sample(0).trained == std::vector<uint8_t>{0, 1, 1, 1, 1});
}

TEST_CASE("mask_history trains the last answer alone, with a chat template and without") {
  const Tokenizer t = make_tokenizer();
  const ChatTemplate chat = make_chat(kChatMl);
  const std::string alpaca = R"({"instruction":"i","output":"o","history":[["q","a"],["r","b"]]})";
  const std::string waiting =
      R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},)"
      R"({"role":"user","content":"r"},{"role":"assistant","content":"b"},)"
      R"({"role":"user","content":"s"}]})";
  DatasetOptions options;
  for (const bool with_chat : {true, false}) {
    CAPTURE(with_chat);
    const std::string end = with_chat ? "<|im_end|>" : "</s>";
    options.style.chat = with_chat ? &chat : nullptr;
    options.mask_history = false;
    CHECK(trained_text(load_bytes(alpaca, options, t).sample(0), t) ==
          "a" + end + "|b" + end + "|o" + end);
    options.mask_history = true;
    const Dataset masked = load_bytes(alpaca, options, t);
    CHECK(trained_text(masked.sample(0), t) == "o" + end);
    CHECK(trained_text(load_bytes(waiting, options, t).sample(0), t) == "b" + end);
  }
}

TEST_CASE("sharegpt is told by its key, beside messages and alpaca") {
  const Tokenizer t = make_tokenizer();
  const ChatTemplate chat = make_chat(kChatMl);
  const Dataset d = load_bytes(
      R"([{"id":"x","conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}]}])",
      {.style = {.chat = &chat}}, t, "d.json");
  CHECK(t.decode(d.sample(0).ids, false) ==
        "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n");
  CHECK(trained_text(d.sample(0), t) == "a<|im_end|>");
  LF_CHECK_ERROR(load_bytes("{\"conversations\":[{\"from\":\"human\",\"value\":\"q\"},"
                            "{\"from\":\"gpt\",\"value\":\"a\"}]}\n\n{\"messages\":[]}\n",
                            {.style = {.chat = &chat}}, t),
                 ErrorCode::kBadData, "data.jsonl:3: key \"conversations\" is missing");
  LF_CHECK_ERROR(load_bytes("{\"prompt\":\"a\"}\n", {}, t), ErrorCode::kBadData,
                 "data.jsonl:1: the record has keys prompt; known formats: alpaca");
}

// Every place that a reader was at: another one goes on from there as the first did.
void check_places(const std::string& bytes, const DatasetOptions& options, const char* name) {
  CAPTURE(name);
  const Tokenizer t = make_tokenizer({.adds_bos = true});
  const test::TempDir folder;
  test::write_file(folder / name, bytes);
  DatasetOptions o = options;
  o.path_or_name = (folder / name).string();
  SampleReader reader(o, t);
  std::vector<SamplePlace> places = {reader.place()};
  std::vector<Sample> samples;
  for (Sample sample; reader.next(sample);) {
    samples.push_back(sample);
    places.push_back(reader.place());
  }
  REQUIRE(samples.size() > 3);
  SampleReader other(o, t);
  for (size_t p = places.size(); p-- > 0;) {
    other.go_to(places[p]);
    size_t i = p;
    for (Sample sample; other.next(sample); ++i) {
      REQUIRE(i < samples.size());
      CHECK(sample.ids == samples[i].ids);
      CHECK(sample.trained == samples[i].trained);
      CHECK(sample.line == samples[i].line);
    }
    CHECK(i == samples.size());
  }
}

TEST_CASE("a reader goes on from every place as if it had never stopped") {
  const std::string lines =
      "\xEF\xBB\xBF{\"text\":\"abc\\n\\nd\"}\r\n\r\n{\"text\":\"d\"}\n{\"text\":\"efghi\\njklmn\"}"
      "\n"
      "{\"text\":\"o\"}";
  for (const TextChunks chunks :
       {TextChunks::kRecord, TextChunks::kParagraph, TextChunks::kLine, TextChunks::kPacked}) {
    check_places(lines, {.cutoff_len = 4, .text_chunks = chunks}, "d.jsonl");
    check_places(
        "[{\"text\":\"abc\"}\n , {\"text\":\"d\\n\\ne\"},{\"text\":\"fghijk\"},\n"
        "{\"text\":\"l\"}]\n",
        {.cutoff_len = 4, .text_chunks = chunks}, "d.json");
    check_places("ab\ncd\n\nefghij\n\n\nk\n \nl\nm", {.cutoff_len = 3, .text_chunks = chunks},
                 "d.txt");
    check_places(lines, {.cutoff_len = 4, .max_samples = 4, .text_chunks = chunks}, "d.jsonl");
  }
}

TEST_CASE("a place in a file that has changed is refused") {
  const Tokenizer t = make_tokenizer();
  const test::TempDir folder;
  test::write_file(folder / "d.txt", "ab\n");
  const DatasetOptions options{.path_or_name = (folder / "d.txt").string(),
                               .text_chunks = TextChunks::kLine};
  SampleReader reader(options, t);
  SamplePlace place;
  place.record.offset = 100;
  LF_CHECK_ERROR(reader.go_to(place), ErrorCode::kBadData, "d.txt: ends before byte 100");
  place.record.offset = 0;
  place.given = 7;
  LF_CHECK_ERROR(reader.go_to(place), ErrorCode::kBadData, "d.txt: does not go on at byte 0");
}

}  // namespace
}  // namespace loongforge::data
