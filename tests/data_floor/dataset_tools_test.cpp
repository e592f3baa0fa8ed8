#include <doctest/doctest.h>

#include "data/conversation.h"
#include "support/expect_error.h"

namespace loongforge::data {
namespace {

Record record_of(const std::string& json) {
  Record record;
  record.value = support::Json::parse(json, "record");
  record.where = "f:3";
  return record;
}

TEST_CASE("tools: an array, or one as text; empty is none") {
  const std::string tool = R"([{"name":"f","parameters":{}}])";
  const std::string wrapped = R"([{"type":"function","function":{"name":"f","parameters":{}}}])";
  CHECK(read_tools(record_of("{\"tools\":" + tool + "}")).dump() == tool);
  CHECK(read_tools(record_of(R"({"tools":"[{\"name\":\"f\",\"parameters\":{}}]"})")).dump() ==
        tool);
  CHECK(read_wrapped_tools(record_of("{\"tools\":" + tool + "}")).dump() == wrapped);
  CHECK(read_wrapped_tools(record_of("{\"tools\":" + wrapped + "}")).dump() == wrapped);
  for (const char* none : {"{}", R"({"tools":null})", R"({"tools":""})", R"({"tools":" \n"})",
                           R"({"tools":[]})", R"({"tools":"[]"})"}) {
    CHECK(read_tools(record_of(none)).is_null());
    CHECK(read_wrapped_tools(record_of(none)).is_null());
  }
}

TEST_CASE("tools that are wrong") {
  const auto bad = [](const char* json, const char* text) {
    LF_CHECK_ERROR(read_wrapped_tools(record_of(json)), ErrorCode::kBadData, text);
  };
  bad(R"({"tools":7})", "f:3: \"tools\" is integer, not array");
  bad(R"({"tools":"{}"})", "f:3: \"tools\" is object text, not array");
  bad(R"({"tools":"[{"})", "f:3: \"tools\" is no JSON");
  bad(R"({"tools":["f"]})", "f:3: \"tools[0]\" is string, not object");
  bad(R"({"tools":[{"name":"f"},{"description":"d"}]})", "f:3: key \"tools[1].name\" is missing");
}

}  // namespace
}  // namespace loongforge::data
