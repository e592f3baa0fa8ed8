#include <doctest/doctest.h>

#include "data/conversation.h"
#include "support/expect_error.h"

namespace loongforge::data {
namespace {

Conversation read(const char* json) {
  Record record;
  record.value = support::Json::parse(json, "record");
  record.where = "f:3";
  return read_alpaca(record);
}

TEST_CASE("an alpaca record becomes messages") {
  CHECK(read(R"({"instruction":"i","output":"o"})").messages.dump() ==
        R"([{"role":"user","content":"i"},{"role":"assistant","content":"o"}])");
  const Conversation full = read(R"({"instruction":"i","input":"in","output":"o","system":"s",
      "history":[["q1","a1"],["q2","a2"]],"id":7})");
  CHECK(full.messages.dump() ==
        R"([{"role":"system","content":"s"},{"role":"user","content":"q1"},)"
        R"({"role":"assistant","content":"a1"},{"role":"user","content":"q2"},)"
        R"({"role":"assistant","content":"a2"},{"role":"user","content":"i\nin"},)"
        R"({"role":"assistant","content":"o"}])");
  CHECK(full.input_bytes == 2);
  const Conversation nulls =
      read(R"({"instruction":"i","input":null,"output":"o","system":"","history":null})");
  CHECK(nulls.messages.as_array().size() == 2);
  CHECK(nulls.input_bytes == 0);
}

TEST_CASE("alpaca records that are wrong name the key") {
  const auto bad = [](const char* json, const char* text) {
    LF_CHECK_ERROR(read(json), ErrorCode::kBadData, text);
  };
  bad(R"({"output":"o"})", "f:3: key \"instruction\" is missing");
  bad(R"({"instruction":"i"})", "f:3: key \"output\" is missing");
  bad(R"({"instruction":"i","output":5})", "f:3: \"output\" is integer, not string");
  bad(R"({"instruction":["i"],"output":"o"})", "f:3: \"instruction\" is array, not string");
  bad(R"({"instruction":"i","output":null})", "f:3: \"output\" is null, not string");
  bad(R"({"instruction":"i","input":{},"output":"o"})", "f:3: \"input\" is object, not string");
  bad(R"({"instruction":"i","output":"o","system":1})", "f:3: \"system\" is integer");
  bad(R"({"instruction":"i","output":"o","history":"x"})", "f:3: \"history\" is string, not array");
  bad(R"({"instruction":"i","output":"o","history":[["q","a"],["q"]]})",
      "f:3: \"history[1]\" is no pair of strings");
  bad(R"({"instruction":"i","output":"o","history":[["q",1]]})", "\"history[0]\" is no pair");
}

}  // namespace
}  // namespace loongforge::data
