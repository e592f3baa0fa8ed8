#include <doctest/doctest.h>

#include "data/conversation.h"
#include "support/expect_error.h"

namespace loongforge::data {
namespace {

Conversation read(const char* json) {
  Record record;
  record.value = support::Json::parse(json, "record");
  record.where = "f:3";
  return read_messages(record);
}

TEST_CASE("contents become strings, other keys stay") {
  const Conversation c = read(R"({"messages":[{"role":"system","content":"s"},
      {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"assistant","content":null,"tool_calls":[{"name":"f"}]},
      {"role":"tool","content":"7","name":"f"},
      {"role":"assistant","content":"c"}],"tools":[{"name":"f"}]})");
  CHECK(c.messages.dump() ==
        R"([{"role":"system","content":"s"},{"role":"user","content":"a\nb"},)"
        R"({"role":"assistant","content":"","tool_calls":[{"name":"f"}]},)"
        R"({"role":"tool","content":"7","name":"f"},{"role":"assistant","content":"c"}])");
  CHECK(c.tools.dump() == R"([{"name":"f"}])");
  CHECK(has_answer(c));
}

TEST_CASE("an answer is an assistant's turn that says or calls something") {
  CHECK_FALSE(has_answer(read(R"({"messages":[{"role":"user","content":"q"}]})")));
  CHECK_FALSE(has_answer(read(R"({"messages":[{"role":"assistant","content":" \n\u3000"}]})")));
  CHECK(has_answer(read(R"({"messages":[{"role":"assistant","tool_calls":[{}]}]})")));
}

TEST_CASE("messages that are wrong name the place") {
  const auto bad = [](const char* json, const char* text) {
    LF_CHECK_ERROR(read(json), ErrorCode::kBadData, text);
  };
  bad(R"({"messages":{}})", "f:3: \"messages\" is object, not array");
  bad(R"({"messages":[]})", "f:3: \"messages\" is empty");
  bad(R"({"messages":["hi"]})", "f:3: \"messages[0]\" is string, not object");
  bad(R"({"messages":[{"content":"q"}]})", "f:3: key \"messages[0].role\" is missing");
  bad(R"({"messages":[{"role":1,"content":"q"}]})", "f:3: \"messages[0].role\" is integer");
  bad(R"({"messages":[{"role":"user"}]})", "f:3: key \"messages[0].content\" is missing");
  bad(R"({"messages":[{"role":"user","content":3}]})", "f:3: \"messages[0].content\" is integer");
  bad(R"({"messages":[{"role":"user","content":"q"},{"role":"gpt","content":"a"}]})",
      "f:3: \"messages[1].role\" is \"gpt\"; roles are system, user, assistant and tool");
  bad(R"({"messages":[{"role":"user","content":["q"]}]})",
      "f:3: \"messages[0].content[0]\" is string, not object");
  bad(R"({"messages":[{"role":"user","content":[{"type":"image"}]}]})",
      "f:3: \"messages[0].content[0].type\" is \"image\"");
  bad(R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})",
      "f:3: key \"messages[0].content[0].text\" is missing");
}

}  // namespace
}  // namespace loongforge::data
