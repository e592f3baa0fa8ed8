// Messages records: {"messages": [{"role", "content"}], "tools": [...]}.
#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "data/conversation.h"
#include "support/printable.h"

namespace loongforge::data {
namespace {

using support::Json;

constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};

bool holds_something(const Json* list) {
  return list != nullptr && list->is_array() && !list->as_array().empty();
}

// The text parts of a content list, one a line: what templates that know strings only are given
// elsewhere too.
std::string join_parts(const Json::Array& parts, const std::string& path,
                       const std::string& where) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string part = path + "[" + std::to_string(i) + "]";
    if (!parts[i].is_object())
      throw_bad_data(where, "\"" + part + "\" is " + parts[i].type_name() + ", not object");
    const std::string& type = string_member(parts[i], "type", where, part + ".type");
    if (type != "text")
      throw_bad_data(where, "\"" + part + ".type\" is \"" + support::printable(type, 40) +
                                "\": only \"text\" is supported");
    if (i > 0) text += '\n';
    text += string_member(parts[i], "text", where, part + ".text");
  }
  return text;
}

std::string content_text(const Json& message, const std::string& path, const std::string& where) {
  const Json* content = message.find("content");
  const std::string name = path + ".content";
  const bool none = content == nullptr || content->is_null();
  if (none && holds_something(message.find("tool_calls"))) return {};
  if (none) throw_bad_data(where, "key \"" + name + "\" is missing");
  if (content->is_string()) return content->as_string();
  if (content->is_array()) return join_parts(content->as_array(), name, where);
  throw_bad_data(where,
                 "\"" + name + "\" is " + content->type_name() + ", not string or array of parts");
}

}  // namespace

Conversation read_messages(const Record& record) {
  const Json::Array& messages = array_member(record.value, "messages", record.where);
  if (messages.empty()) throw_bad_data(record.where, "\"messages\" is empty");
  Conversation conversation;
  conversation.where = record.where;
  conversation.messages = Json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string path = "messages[" + std::to_string(i) + "]";
    if (!messages[i].is_object())
      throw_bad_data(record.where,
                     "\"" + path + "\" is " + messages[i].type_name() + ", not object");
    const std::string& role = string_member(messages[i], "role", record.where, path + ".role");
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end())
      throw_bad_data(record.where,
                     "\"" + path + ".role\" is \"" + support::printable(role, 40) + "\"",
                     "roles are system, user, assistant and tool");
    Json message = messages[i];
    message.set("content", content_text(messages[i], path, record.where));
    conversation.messages.push_back(std::move(message));
  }
  conversation.tools = read_tools(record);
  return conversation;
}

bool has_answer(const Conversation& conversation) {
  const Json::Array& messages = conversation.messages.as_array();
  return std::any_of(messages.begin(), messages.end(), [](const Json& message) {
    return message.find("role")->as_string() == "assistant" &&
           (!is_blank(message.find("content")->as_string()) ||
            holds_something(message.find("tool_calls")));
  });
}

}  // namespace loongforge::data
