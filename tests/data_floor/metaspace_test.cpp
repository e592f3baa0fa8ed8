// Reference tokenizers with every scheme: tokenizer_test.cpp.
#include "data/metaspace.h"

#include "data/tokenizer.h"
#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using support::Json;
using test::has;

Tokenizer make(const char* scheme) {
  Json json = Json::parse(R"({"added_tokens": [{"id": 6, "content": "<s>", "special": true}],
      "model": {"type": "BPE", "vocab": {"\u2581": 0, "a": 1, "b": 2, "\u2581a": 3, "\u9f99": 4,
                "\u2581\u2581": 5}, "merges": ["\u2581 a", "\u2581 \u2581"]}})",
                          "base");
  Json part = Json::parse(R"({"type": "Metaspace", "replacement": "\u2581", "split": false})", "m");
  part.set("prepend_scheme", scheme);
  json.set("pre_tokenizer", part);
  json.set("decoder", part);
  return Tokenizer::from_json(json, Json(), Json(), "t.json");
}

TEST_CASE("a word is led by a space everywhere, at the text's start, or nowhere") {
  using Ids = std::vector<int32_t>;
  CHECK(make("always").encode("a<s>a", false) == Ids{3, 6, 3});
  CHECK(make("first").encode("a<s>a", false) == Ids{3, 6, 1});
  CHECK(make("first").encode("<s>a a", false) == Ids{6, 1, 3});
  CHECK(make("never").encode("a<s>a", false) == Ids{1, 6, 1});
  CHECK(make("always").encode("  a", false) == Ids{0, 3});
  CHECK(make("first").decode(Ids{3, 6, 3}, true) == "a a");
  CHECK(make("never").decode(Ids{3, 6, 3}, true) == " a a");
}

TEST_CASE("the space that leads a word names the text it leads") {
  const Encoding e = make("first").encode_with_offsets("\xE9\xBE\x99 a<s>b", false);
  REQUIRE(e.ids == std::vector<int32_t>{0, 4, 3, 6, 2});
  using Offset = std::pair<size_t, size_t>;
  CHECK(e.offsets == std::vector<Offset>{{0, 3}, {0, 3}, {3, 5}, {5, 8}, {8, 9}});
}

TEST_CASE("what is wrong in its options is named") {
  const auto fault = [](const char* json) {
    return std::string(
        test::error_of([&] { make_metaspace(Json::parse(json, "j"), "t.json"); }).what());
  };
  CHECK(has(fault(R"({})"), "replacement"));
  CHECK(has(fault(R"({"replacement": "ab"})"), "not one character"));
  CHECK(has(fault(R"({"replacement": "_", "prepend_scheme": "odd"})"),
            "prepend_scheme odd is not supported"));
}

}  // namespace
}  // namespace loongforge::data
