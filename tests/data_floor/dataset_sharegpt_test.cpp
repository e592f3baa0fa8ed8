#include <doctest/doctest.h>

#include "data/conversation.h"
#include "support/expect_error.h"

namespace loongforge::data {
namespace {

Conversation read(const char* json) {
  Record record;
  record.value = support::Json::parse(json, "record");
  record.where = "f:3";
  return read_sharegpt(record);
}

TEST_CASE("speakers become roles; a system prompt stands first or beside the turns") {
  const Conversation c = read(R"({"conversations":[{"from":"system","value":"s"},
      {"from":"human","value":"q"},{"from":"gpt","value":"a"},
      {"from":"human","value":"r"},{"from":"gpt","value":"b"}]})");
  CHECK(c.messages.dump() == R"([{"role":"system","content":"s"},{"role":"user","content":"q"},)"
                             R"({"role":"assistant","content":"a"},{"role":"user","content":"r"},)"
                             R"({"role":"assistant","content":"b"}])");
  CHECK(c.tools.is_null());
  CHECK(has_answer(c));
  const Conversation beside = read(R"({"conversations":[{"from":"human","value":"q"},
      {"from":"gpt","value":"a"}],"system":"s","tools":""})");
  CHECK(beside.messages.as_array().size() == 3);
  CHECK(beside.messages.as_array()[0].dump() == R"({"role":"system","content":"s"})");
  CHECK(beside.tools.is_null());
}

TEST_CASE("a function_call is an answer that calls a tool, an observation the tool's words") {
  const Conversation c = read(R"({"conversations":[{"from":"human","value":"q"},
      {"from":"function_call","value":"{\"name\":\"f\",\"arguments\":{\"x\":1}}"},
      {"from":"observation","value":"7"},
      {"from":"function_call","value":"[{\"name\":\"g\",\"arguments\":\"{}\"},{\"name\":\"h\",\"arguments\":{}}]"},
      {"from":"tool","value":"8"},
      {"from":"gpt","value":"a"}],
      "tools":"[{\"name\":\"f\",\"description\":\"d\",\"parameters\":{}}]"})");
  CHECK(
      c.messages.dump() ==
      R"([{"role":"user","content":"q"},)"
      R"({"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":{"x":1}}}]},)"
      R"({"role":"tool","content":"7"},)"
      R"({"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"g","arguments":{}}},)"
      R"({"type":"function","function":{"name":"h","arguments":{}}}]},)"
      R"({"role":"tool","content":"8"},{"role":"assistant","content":"a"}])");
  CHECK(c.tools.dump() ==
        R"([{"type":"function","function":{"name":"f","description":"d","parameters":{}}}])");
}

TEST_CASE("sharegpt records that are wrong name the turn") {
  const auto bad = [](const std::string& turns, const char* text) {
    LF_CHECK_ERROR(read(("{\"conversations\":" + turns + "}").c_str()), ErrorCode::kBadData, text);
  };
  const std::string q = R"({"from":"human","value":"q"})", a = R"({"from":"gpt","value":"a"})";
  bad("7", "f:3: \"conversations\" is integer, not array");
  bad("[]", "f:3: \"conversations\" is empty");
  bad("[\"hi\"]", "f:3: \"conversations[0]\" is string, not object");
  bad(R"([{"value":"q"}])", "f:3: key \"conversations[0].from\" is missing");
  bad(R"([{"from":3,"value":"q"}])", "f:3: \"conversations[0].from\" is integer");
  bad(R"([{"from":"human"}])", "f:3: key \"conversations[0].value\" is missing");
  bad(R"([{"from":"human","value":["q"]}])", "f:3: \"conversations[0].value\" is array");
  bad(R"([{"from":"bing","value":"q"}])", "f:3: \"conversations[0].from\" is \"bing\"; speakers");
  bad("[" + a + "]", "f:3: \"conversations[0]\" is gpt's, where a question");
  bad("[" + q + "," + q + "]", "f:3: \"conversations[1]\" is human's, where an answer");
  bad("[" + q + "," + a + "," + q + "]", "f:3: the conversation ends without an answer");
  bad(R"([{"from":"system","value":"s"}])", "f:3: the conversation ends without an answer");
  bad("[" + q + "," + a + R"(,{"from":"system","value":"s"}])",
      "f:3: \"conversations[2]\": a system turn inside");
  const auto call = [&](const char* value, const char* text) {
    bad("[" + q + R"(,{"from":"function_call","value":)" + value + "}]", text);
  };
  call(R"_("f(1)")_", "f:3: \"conversations[1].value\" is no JSON");
  call(R"("7")", "f:3: \"conversations[1].value\" holds integer, not object");
  call(R"("[]")", "f:3: \"conversations[1].value\" calls nothing");
  call(R"("{\"arguments\":{}}")", "f:3: key \"conversations[1].value.name\" is missing");
  call(R"("{\"name\":\"f\"}")", "f:3: key \"conversations[1].value.arguments\" is missing");
  call(R"("{\"name\":\"f\",\"arguments\":3}")", "arguments\" is integer, not object");
  LF_CHECK_ERROR(
      read(R"({"conversations":[{"from":"system","value":"s"},{"from":"human","value":"q"},
      {"from":"gpt","value":"a"}],"system":"t"})"),
      ErrorCode::kBadData, "f:3: \"system\" and the first turn are two system prompts");
}

}  // namespace
}  // namespace loongforge::data
