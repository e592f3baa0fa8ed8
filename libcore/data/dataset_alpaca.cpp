// Alpaca records: instruction, input, output, system, history [[question, answer], ...].
#include <string>
#include <utility>

#include "base/error.h"
#include "data/conversation.h"

namespace loongforge::data {
namespace {

using support::Json;

void add_message(Json& messages, const char* role, std::string content) {
  Json message = Json::object();
  message.set("role", role);
  message.set("content", std::move(content));
  messages.push_back(std::move(message));
}

void add_history(Json& messages, const Record& record) {
  const Json* history = record.value.find("history");
  if (history == nullptr || history->is_null()) return;
  const Json::Array& pairs = array_member(record.value, "history", record.where);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Json& pair = pairs[i];
    const bool strings = pair.is_array() && pair.as_array().size() == 2 &&
                         pair.as_array()[0].is_string() && pair.as_array()[1].is_string();
    if (!strings)
      throw_bad_data(record.where, "\"history[" + std::to_string(i) +
                                       "]\" is no pair of strings: a question and its answer");
    add_message(messages, "user", pair.as_array()[0].as_string());
    add_message(messages, "assistant", pair.as_array()[1].as_string());
  }
}

}  // namespace

Conversation read_alpaca(const Record& record) {
  const std::string& instruction = string_member(record.value, "instruction", record.where);
  const std::string input = optional_string(record.value, "input", record.where);
  const std::string& output = string_member(record.value, "output", record.where);
  const std::string system = optional_string(record.value, "system", record.where);
  Conversation conversation;
  conversation.where = record.where;
  conversation.messages = Json::array();
  if (!system.empty()) add_message(conversation.messages, "system", system);
  add_history(conversation.messages, record);
  conversation.input_bytes = input.size();
  add_message(conversation.messages, "user",
              input.empty() ? instruction : instruction + "\n" + input);
  add_message(conversation.messages, "assistant", output);
  conversation.tools = read_tools(record);
  return conversation;
}

}  // namespace loongforge::data
