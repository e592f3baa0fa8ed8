#include <doctest/doctest.h>

#include "data/conversation.h"
#include "data_floor/small_tokenizer.h"
#include "support/expect_error.h"

namespace loongforge::data {
namespace {

using test::kBos;
using test::kEos;
using test::load_bytes;
using test::make_tokenizer;

TEST_CASE("white space is what Unicode says it is") {
  CHECK(is_blank(""));
  CHECK(is_blank(" \t\r\n\xE3\x80\x80\xC2\xA0"));
  CHECK_FALSE(is_blank(" \xE4\xBD\xA0"));
}

TEST_CASE("text: all tokens but BOS are trained on, and it ends with eos") {
  const Tokenizer with_bos = make_tokenizer({.adds_bos = true});
  const Dataset d = load_bytes("{\"text\":\"ab\"}\n{\"text\":\"c\"}\n", {}, with_bos);
  REQUIRE(d.samples().size() == 2);
  CHECK(d.sample(0).ids == std::vector<int32_t>{kBos, 'a', 'b', kEos});
  CHECK(d.sample(0).trained == std::vector<uint8_t>{0, 1, 1, 1});
  CHECK(d.sample(1).line == 2);
  // Without BOS nothing comes before the first token: it cannot be learnt.
  const Dataset bare = load_bytes("{\"text\":\"ab\"}\n", {}, make_tokenizer());
  CHECK(bare.sample(0).ids == std::vector<int32_t>{'a', 'b', kEos});
  CHECK(bare.sample(0).trained == std::vector<uint8_t>{0, 1, 1});
}

TEST_CASE("a .txt file: one paragraph a sample") {
  const Tokenizer t = make_tokenizer();
  const Dataset d = load_bytes("one\ntwo\n\nthree\n", {}, t, "data.txt");
  REQUIRE(d.samples().size() == 2);
  CHECK(t.decode(d.sample(0).ids, false) == "one\ntwo</s>");
  CHECK(d.sample(1).line == 4);
  CHECK(test::trained_text(d.sample(1), t) == "hree</s>");
}

TEST_CASE("text that is wrong") {
  const Tokenizer t = make_tokenizer();
  LF_CHECK_ERROR(load_bytes("{\"text\":\"a\"}\n{\"text\":\" \"}\n", {}, t), ErrorCode::kBadData,
                 "data.jsonl:2: the text is empty");
  LF_CHECK_ERROR(load_bytes("{\"text\":7}\n", {}, t), ErrorCode::kBadData,
                 "data.jsonl:1: \"text\" is integer, not string");
  LF_CHECK_ERROR(load_bytes("{\"text\":\"a\"}\n{\"txt\":\"a\"}\n", {}, t), ErrorCode::kBadData,
                 "data.jsonl:2: key \"text\" is missing");
  LF_CHECK_ERROR(load_bytes("{\"text\":\"a\"}\n", {}, make_tokenizer({.eos = "", .pad = ""})),
                 ErrorCode::kBadData, "no eos token");
}

}  // namespace
}  // namespace loongforge::data
