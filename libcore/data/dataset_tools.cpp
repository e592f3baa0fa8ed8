// The tools that a record names: {"tools": [...]}, or the same as JSON text, as sharegpt files have
// it.
#include <string>
#include <utility>

#include "base/error.h"
#include "data/conversation.h"

namespace loongforge::data {
namespace {

using support::Json;

// Inside a string: the place in it, not in the file, is what a parser can say.
Json parse_text(const std::string& text, const std::string& key, const std::string& where) {
  try {
    return Json::parse(text, {});
  } catch (const Error& e) {
    throw_bad_data(where, "\"" + key + "\" is no JSON: " + e.message());
  }
}

}  // namespace

Json read_tools(const Record& record) {
  const Json* found = record.value.find("tools");
  if (found == nullptr || found->is_null()) return {};
  Json tools = *found;
  const bool text = tools.is_string();
  if (text) {
    if (is_blank(tools.as_string())) return {};
    tools = parse_text(tools.as_string(), "tools", record.where);
  }
  if (!tools.is_array())
    throw_bad_data(record.where, std::string("\"tools\" is ") + tools.type_name() +
                                     (text ? " text" : "") + ", not array");
  if (tools.as_array().empty()) return {};
  for (size_t i = 0; i < tools.as_array().size(); ++i)
    if (const Json& tool = tools.as_array()[i]; !tool.is_object())
      throw_bad_data(record.where, "\"tools[" + std::to_string(i) + "]\" is " + tool.type_name() +
                                       ", not object");
  return tools;
}

Json read_wrapped_tools(const Record& record) {
  Json tools = read_tools(record);
  if (tools.is_null()) return tools;
  for (size_t i = 0; i < tools.as_array().size(); ++i) {
    Json& tool = tools.as_array()[i];
    if (tool.contains("function")) continue;
    string_member(tool, "name", record.where, "tools[" + std::to_string(i) + "].name");
    Json wrapped = Json::object();
    wrapped.set("type", "function");
    wrapped.set("function", std::move(tool));
    tool = std::move(wrapped);
  }
  return tools;
}

Json read_calls(const std::string& text, const std::string& path, const std::string& where) {
  Json parsed = parse_text(text, path, where);
  Json::Array calls;
  if (parsed.is_array())
    calls = std::move(parsed.as_array());
  else
    calls.push_back(std::move(parsed));
  if (calls.empty()) throw_bad_data(where, "\"" + path + "\" calls nothing");
  Json result = Json::array();
  for (Json& call : calls) {
    if (!call.is_object())
      throw_bad_data(where, "\"" + path + "\" holds " + call.type_name() + ", not object",
                     R"(a call is {"name": "...", "arguments": {...}})");
    string_member(call, "name", where, path + ".name");
    Json* arguments = call.find("arguments");
    if (arguments == nullptr) throw_bad_data(where, "key \"" + path + ".arguments\" is missing");
    if (arguments->is_string())
      *arguments = parse_text(arguments->as_string(), path + ".arguments", where);
    if (!arguments->is_object())
      throw_bad_data(where,
                     "\"" + path + ".arguments\" is " + arguments->type_name() + ", not object");
    Json wrapped = Json::object();
    wrapped.set("type", "function");
    wrapped.set("function", std::move(call));
    result.push_back(std::move(wrapped));
  }
  return result;
}

}  // namespace loongforge::data
