// ShareGPT records: {"conversations": [{"from", "value"}], "system", "tools"}. A system turn may
// come first; then those who ask (human, or a tool's result) and those who answer (gpt, or a call
// of a tool) take turns, and the last one answers.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/conversation.h"
#include "support/printable.h"

namespace loongforge::data {
namespace {

using support::Json;

struct Speaker {
  std::string_view from;
  const char* role;
  bool answers;
};
constexpr std::array<Speaker, 9> kSpeakers = {{{"human", "user", false},
                                               {"user", "user", false},
                                               {"observation", "tool", false},
                                               {"tool", "tool", false},
                                               {"gpt", "assistant", true},
                                               {"assistant", "assistant", true},
                                               {"chatgpt", "assistant", true},
                                               {"function_call", "assistant", true},
                                               {"system", "system", false}}};

const Speaker& speaker_of(const std::string& from, std::string_view path,
                          const std::string& where) {
  const auto found = std::find_if(kSpeakers.begin(), kSpeakers.end(),
                                  [&](const Speaker& s) { return s.from == from; });
  if (found == kSpeakers.end())
    throw_bad_data(where,
                   "\"" + std::string(path) + "\" is \"" + support::printable(from, 40) + "\"",
                   "speakers are human, gpt, system, function_call, observation and tool");
  return *found;
}

Json message(const char* role, std::string content) {
  Json made = Json::object();
  made.set("role", role);
  made.set("content", std::move(content));
  return made;
}

// "system" beside the turns, or the first of them.
size_t read_system(const Record& record, const Json::Array& turns, Json& messages) {
  const std::string beside = optional_string(record.value, "system", record.where);
  const Json* from = turns[0].find("from");
  const bool first = from != nullptr && from->is_string() && from->as_string() == "system";
  const std::string inside =
      first ? string_member(turns[0], "value", record.where, "conversations[0].value") : "";
  if (!beside.empty() && first && beside != inside)
    throw_bad_data(record.where, "\"system\" and the first turn are two system prompts");
  const std::string& system = first ? inside : beside;
  if (!system.empty()) messages.push_back(message("system", system));
  return first ? 1 : 0;
}

void add_turn(const Record& record, const Json& turn, const std::string& path, bool answers,
              Json& messages) {
  const std::string& where = record.where;
  if (!turn.is_object())
    throw_bad_data(where, "\"" + path + "\" is " + turn.type_name() + ", not object");
  const std::string& from = string_member(turn, "from", where, path + ".from");
  const Speaker& speaker = speaker_of(from, path + ".from", where);
  if (from == "system")
    throw_bad_data(where, "\"" + path + "\": a system turn inside the conversation");
  if (speaker.answers != answers)
    throw_bad_data(
        where,
        "\"" + path + "\" is " + support::printable(from) + "'s, where " +
            (answers ? "an answer (gpt, function_call)" : "a question (human, observation)") +
            " has to come",
        "questions and answers take turns");
  const std::string& value = string_member(turn, "value", where, path + ".value");
  if (from != "function_call") {
    messages.push_back(message(speaker.role, value));
    return;
  }
  Json call = message("assistant", "");
  call.set("tool_calls", read_calls(value, path + ".value", where));
  messages.push_back(std::move(call));
}

}  // namespace

Conversation read_sharegpt(const Record& record) {
  const Json::Array& turns = array_member(record.value, "conversations", record.where);
  if (turns.empty()) throw_bad_data(record.where, "\"conversations\" is empty");
  Conversation conversation;
  conversation.where = record.where;
  conversation.messages = Json::array();
  const size_t first = read_system(record, turns, conversation.messages);
  for (size_t i = first; i < turns.size(); ++i)
    add_turn(record, turns[i], "conversations[" + std::to_string(i) + "]", (i - first) % 2 == 1,
             conversation.messages);
  if ((turns.size() - first) % 2 != 0 || turns.size() == first)
    throw_bad_data(record.where, "the conversation ends without an answer");
  conversation.tools = read_wrapped_tools(record);
  return conversation;
}

}  // namespace loongforge::data
