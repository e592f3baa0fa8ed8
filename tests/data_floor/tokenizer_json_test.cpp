// What a tokenizer.json can ask for that is not there, and what can be wrong in one.
#include "data/tokenizer_json.h"

#include "data/tokenizer.h"
#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using support::Json;
using test::has;

// A whole file with one part replaced.
std::string fault(const std::string& part, const std::string& value) {
  Json json = Json::parse(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2},
      "merges": ["a b"]}, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
      "decoder": {"type": "ByteLevel"}})",
                          "base");
  json.set(part, Json::parse(value, part));
  const Error e = test::error_of([&] { Tokenizer::from_json(json, Json(), Json(), "t.json"); });
  CHECK(e.where() == "t.json");
  CHECK(e.code() == ErrorCode::kBadData);
  return e.what();
}

TEST_CASE("unsupported parts are named") {
  CHECK(has(fault("normalizer", R"({"type": "BertNormalizer"})"),
            "normalizer BertNormalizer is not supported"));
  CHECK(has(fault("normalizer", R"({"type": "Sequence", "normalizers": [{"type": "Nmt"}]})"),
            "normalizer Nmt is not supported"));
  CHECK(has(fault("pre_tokenizer", R"({"type": "BertPreTokenizer"})"),
            "pre_tokenizer BertPreTokenizer is not supported"));
  CHECK(has(fault("pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
            {"type": "ByteLevel"}, {"type": "Digits"}]})"),
            "pre_tokenizer Digits after ByteLevel"));
  CHECK(has(fault("model", R"({"type": "WordPiece", "vocab": {}})"),
            "model WordPiece is not supported"));
  CHECK(has(fault("decoder", R"({"type": "CTC"})"), "decoder CTC is not supported"));
  CHECK(has(fault("post_processor", R"({"type": "Odd"})"), "post_processor Odd is not supported"));
}

TEST_CASE("wrong values are named") {
  CHECK(has(fault("model", "[]"), "model is array, not object"));
  CHECK(has(fault("model", R"({"type": "BPE", "merges": []})"), "vocab"));
  CHECK(has(fault("added_tokens", R"([{"id": 2, "content": "x"}])"),
            "added token 'x' has the id of token 'ab'"));
  CHECK(has(fault("added_tokens", R"([{"id": 9, "content": "a"}])"),
            "added token 'a' has id 9 here and id 0 elsewhere"));
  CHECK(has(fault("added_tokens", R"([{"id": 9, "content": "x"}, {"id": 9, "content": "y"}])"),
            "added token 'y' has id 9, which belongs to another token"));
  CHECK(has(fault("added_tokens", R"([{"id": 1e9, "content": "x"}])"), "out of range"));
  CHECK(has(fault("pre_tokenizer", R"({"type": "Split", "behavior": "Isolated",
            "pattern": {"Regex": "(a"}})"),
            "regular expression '(a'"));
  CHECK(has(fault("pre_tokenizer", R"({"type": "Split", "behavior": "Odd",
            "pattern": {"Regex": "a"}})"),
            "behavior Odd is not supported"));
  CHECK(has(fault("post_processor", R"({"type": "TemplateProcessing", "single": []})"),
            "leaves the text out"));
  CHECK(has(fault("post_processor", R"({"type": "TemplateProcessing", "single": [
            {"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens": {}})"),
            "<s>"));
}

TEST_CASE("wrong values of the text parts are named") {
  CHECK(has(fault("normalizer", R"({"type": "Prepend"})"), "prepend"));
  CHECK(has(fault("normalizer", R"({"type": "Replace", "pattern": {"String": ""},
            "content": "x"})"),
            "empty pattern"));
  CHECK(has(fault("normalizer", R"({"type": "Replace", "pattern": {"Regex": "(a"},
            "content": "x"})"),
            "regular expression '(a'"));
  CHECK(
      has(fault("normalizer", R"({"type": "Replace", "pattern": 3, "content": "x"})"), "pattern"));
  CHECK(has(fault("normalizer", R"({"type": "Strip", "strip_left": 1, "strip_right": true})"),
            "strip_left is integer"));
  CHECK(has(fault("normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "!"})"),
            "no base64"));
  CHECK(has(fault("normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "AAA="})"),
            "precompiled_charsmap is broken"));
  CHECK(has(fault("decoder", R"({"type": "Strip", "content": "ab", "start": 1, "stop": 0})"),
            "not one character"));
  CHECK(has(fault("decoder", R"({"type": "Strip", "content": "a"})"), "decoder Strip"));
  CHECK(has(fault("decoder", R"({"type": "Replace", "pattern": {"String": ""}, "content": "x"})"),
            "empty pattern"));
  CHECK(has(fault("decoder", R"({"type": "Sequence", "decoders": {"type": "Fuse"}})"),
            "decoders is object"));
  std::string deep = R"({"type": "NFC"})";
  for (int i = 0; i < 200; ++i) deep = R"({"type": "Sequence", "normalizers": [)" + deep + "]}";
  CHECK(has(test::error_of([&] { Json::parse(deep, "t.json"); }).what(), "nest"));
}

TEST_CASE("a pattern that matches nothing between characters is refused when it is met") {
  const Json json = Json::parse(
      R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
          "normalizer": {"type": "Replace", "pattern": {"Regex": "x*"}, "content": "-"}})",
      "base");
  const Tokenizer t = Tokenizer::from_json(json, Json(), Json(), "t.json");
  CHECK(has(test::error_of([&] { t.encode("a", false); }).what(),
            "the pattern 'x*' matches nothing"));
}

TEST_CASE("a normalizer or decoder that makes a flood of a text is stopped") {
  Json json =
      Json::parse(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})", "base");
  std::string doubling = R"({"type": "Sequence", "normalizers": [)";
  for (int i = 0; i < 60; ++i)
    doubling += std::string(i > 0 ? "," : "") +
                R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
  json.set("normalizer", Json::parse(doubling + "]}", "n"));
  const Tokenizer floods = Tokenizer::from_json(json, Json(), Json(), "t.json");
  CHECK(has(test::error_of([&] { floods.encode("a", false); }).what(), "too much of a text"));
  CHECK(has(test::error_of([&] { floods.encode_with_offsets("aa", false); }).what(), "too much"));
  json.set("normalizer", Json());
  Json replace = Json::parse(R"({"type": "Replace", "pattern": {"String": "a"}})", "d");
  replace.set("content", std::string(100000, 'x'));
  json.set("decoder", replace);
  const Tokenizer decodes = Tokenizer::from_json(json, Json(), Json(), "t.json");
  CHECK(has(test::error_of([&] {
              decodes.decode(std::vector<int32_t>{0, 0}, false);
            }).what(),
            "too much of its tokens"));
}

TEST_CASE("ids go on after the largest where the configuration names a new token") {
  const Json json = Json::parse(R"({"model": {"vocab": {"a": 0, "b": 1}, "merges": []},
      "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}})",
                                "base");
  const Json config = Json::parse(
      R"({"pad_token": "[PAD]", "added_tokens_decoder": {"7": {"content": "<x>", "special": true}}})",
      "config");
  const Tokenizer t = Tokenizer::from_json(json, config, Json(), "t.json");
  CHECK(t.token_to_id("<x>") == 7);
  CHECK(t.pad_id() == 8);
  CHECK(t.is_special(8));
  CHECK(t.vocab_size() == 9);
}

}  // namespace
}  // namespace loongforge::data
