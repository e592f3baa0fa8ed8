#include "data/plain_template.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "support/printable.h"

namespace loongforge::data {
namespace {

using support::Json;

constexpr std::array<std::string_view, 1> kNames = {"alpaca"};

constexpr std::string_view kTask =
    "Below is an instruction that describes a task. Write a response that appropriately completes "
    "the request.";
constexpr std::string_view kTaskWithInput =
    "Below is an instruction that describes a task, paired with an input that provides further "
    "context. Write a response that appropriately completes the request.";

std::string question(std::string_view content, size_t input_bytes) {
  std::string text = "### Instruction:\n";
  if (input_bytes == 0) return text.append(content).append("\n\n### Response:\n");
  const size_t break_at = content.size() - input_bytes - 1;
  text.append(content.substr(0, break_at)).append("\n\n### Input:\n");
  return text.append(content.substr(break_at + 1)).append("\n\n### Response:\n");
}

}  // namespace

void check_plain_template(std::string_view name) {
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return;
  std::string known;
  for (std::string_view one : kNames) known.append(known.empty() ? "" : ", ").append(one);
  throw_usage("--template \"" + support::printable(name, 80) + "\" is not known",
              "known templates: " + known);
}

std::vector<PlainTurn> plain_turns(std::string_view name, const Conversation& conversation) {
  check_plain_template(name);
  const Json::Array& messages = conversation.messages.as_array();
  size_t last_user = messages.size();
  for (size_t i = 0; i < messages.size(); ++i)
    if (messages[i].find("role")->as_string() == "user") last_user = i;
  // A system message takes the place of the sentence that opens the prompt.
  std::string pending(conversation.input_bytes > 0 ? kTaskWithInput : kTask);
  std::vector<PlainTurn> turns;
  bool asked = false;
  if (!conversation.tools.is_null())
    throw_bad_data(conversation.where, "template " + std::string(name) + " has no place for tools",
                   "use a model whose chat template knows them");
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].find("role")->as_string();
    const std::string& content = messages[i].find("content")->as_string();
    const auto refuse = [&](const std::string& what) {
      throw_bad_data(conversation.where, "messages[" + std::to_string(i) + "]: " + what,
                     "template " + std::string(name) +
                         " takes question and answer in turn, after "
                         "at most one system message");
    };
    if (role == "system") {
      if (i > 0) refuse("a system message inside the conversation");
      pending = content;
    } else if (role == "user") {
      if (asked) refuse("a second question without an answer");
      pending += "\n\n" + question(content, i == last_user ? conversation.input_bytes : 0);
      asked = true;
    } else if (role == "assistant") {
      if (!asked) refuse("an answer without a question");
      const Json* calls = messages[i].find("tool_calls");
      if (calls != nullptr && !calls->is_null()) refuse("a call of a tool");
      turns.push_back({std::move(pending), content});
      pending.clear();
      asked = false;
    } else {
      refuse("role " + role);
    }
  }
  if (asked) turns.push_back({std::move(pending), {}});
  return turns;
}

}  // namespace loongforge::data
