#include "data/plain_template.h"

#include <doctest/doctest.h>

#include "support/expect_error.h"

namespace loongforge::data {
namespace {

Conversation alpaca(const char* json) {
  Record record;
  record.value = support::Json::parse(json, "record");
  record.where = "f:2";
  return read_alpaca(record);
}

Conversation messages(const char* json) {
  Record record;
  record.value = support::Json::parse(json, "record");
  record.where = "f:2";
  return read_messages(record);
}

TEST_CASE("alpaca: the public prompt without and with input") {
  const auto bare = plain_turns("alpaca", alpaca(R"({"instruction":"Add.","output":"3"})"));
  REQUIRE(bare.size() == 1);
  CHECK(bare[0].prompt ==
        "Below is an instruction that describes a task. Write a response that appropriately "
        "completes the request.\n\n### Instruction:\nAdd.\n\n### Response:\n");
  CHECK(bare[0].answer == "3");
  const auto input =
      plain_turns("alpaca", alpaca(R"({"instruction":"Add.","input":"1\n2","output":"3"})"));
  CHECK(input[0].prompt ==
        "Below is an instruction that describes a task, paired with an input that provides further "
        "context. Write a response that appropriately completes the request.\n\n### "
        "Instruction:\nAdd.\n\n### Input:\n1\n2\n\n### Response:\n");
}

TEST_CASE("alpaca: system and history") {
  const auto turns = plain_turns(
      "alpaca",
      alpaca(R"({"instruction":"i","input":"n","output":"o","system":"S","history":[["q","a"]]})"));
  REQUIRE(turns.size() == 2);
  CHECK(turns[0].prompt == "S\n\n### Instruction:\nq\n\n### Response:\n");
  CHECK(turns[0].answer == "a");
  CHECK(turns[1].prompt == "\n\n### Instruction:\ni\n\n### Input:\nn\n\n### Response:\n");
  CHECK(turns[1].answer == "o");
}

TEST_CASE("a question that waits for its answer") {
  const auto turns = plain_turns("alpaca", messages(R"({"messages":[{"role":"user","content":"q"},
      {"role":"assistant","content":"a"},{"role":"user","content":"r"}]})"));
  REQUIRE(turns.size() == 2);
  CHECK(turns[1].prompt == "\n\n### Instruction:\nr\n\n### Response:\n");
  CHECK(turns[1].answer.empty());
}

TEST_CASE("an unknown template is a usage error that lists the known") {
  LF_CHECK_ERROR(check_plain_template("vicuna"), ErrorCode::kUsage,
                 "--template \"vicuna\" is not known; known templates: alpaca");
}

TEST_CASE("what a plain template has no place for") {
  const auto bad = [](const char* json, const char* text) {
    LF_CHECK_ERROR(plain_turns("alpaca", messages(json)), ErrorCode::kBadData, text);
  };
  bad(R"({"messages":[{"role":"tool","content":"q"}]})", "f:2: messages[0]: role tool");
  bad(R"({"messages":[{"role":"assistant","content":"a"}]})", "an answer without a question");
  bad(R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"name":"f"}]}]})",
      "f:2: messages[1]: a call of a tool");
  bad(R"({"messages":[{"role":"user","content":"q"}],"tools":[{"name":"f"}]})",
      "f:2: template alpaca has no place for tools");
  bad(R"({"messages":[{"role":"user","content":"q"},{"role":"user","content":"q"}]})",
      "f:2: messages[1]: a second question without an answer");
  bad(R"({"messages":[{"role":"user","content":"q"},{"role":"system","content":"s"}]})",
      "f:2: messages[1]: a system message inside the conversation");
}

}  // namespace
}  // namespace loongforge::data
