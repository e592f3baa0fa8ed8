#include "data/tokenizer_config.h"

#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

using support::Json;
using test::has;

TokenizerConfig parse(const char* config, const char* map = "null") {
  return parse_tokenizer_config(Json::parse(config, "c"), Json::parse(map, "m"), "c.json");
}

TEST_CASE("special tokens are strings or objects; null is none; the map fills gaps") {
  const TokenizerConfig c =
      parse(R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": true},
               "pad_token": null, "additional_special_tokens": ["<x>", {"content": "<y>"}]})",
            R"({"bos_token": "other", "unk_token": "<unk>"})");
  CHECK(c.token("bos_token") == "<s>");
  CHECK(c.token("eos_token") == "</s>");
  CHECK(c.token("pad_token").empty());
  CHECK(c.token("unk_token") == "<unk>");
  CHECK(c.special_tokens.at("additional_special_tokens") == Json::parse(R"(["<x>", "<y>"])", ""));
  REQUIRE(c.named.size() == 5);
  CHECK(c.named[1].lstrip);
  CHECK(c.named[1].special);
}

TEST_CASE("chat templates: one, several, none") {
  CHECK(parse("{}").chat_templates.empty());
  CHECK(parse(R"({"chat_template": null})").chat_templates.empty());
  const TokenizerConfig one = parse(R"({"chat_template": "x"})");
  REQUIRE(one.chat_templates.size() == 1);
  CHECK(one.chat_templates[0] == std::pair<std::string, std::string>{"default", "x"});
  const TokenizerConfig two = parse(
      R"({"chat_template": [{"name": "a", "template": "1"}, {"name": "b", "template": "2"}]})");
  REQUIRE(two.chat_templates.size() == 2);
  CHECK(two.chat_templates[1].first == "b");
}

TEST_CASE("wrong values name the key and the file") {
  for (const char* config :
       {R"({"bos_token": 5})", R"({"add_bos_token": "yes"})", R"({"chat_template": 7})",
        R"({"added_tokens_decoder": {"x": {"content": "a"}}})",
        R"({"added_tokens_decoder": {"1": {"special": true}}})", "[]"}) {
    CAPTURE(config);
    const Error e = test::error_of([&] { parse(config); });
    CHECK(e.where() == "c.json");
    CHECK(e.code() == ErrorCode::kBadData);
  }
}

}  // namespace
}  // namespace loongforge::data
