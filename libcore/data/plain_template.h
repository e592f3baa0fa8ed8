// Prompts for models without a chat template: "alpaca", the instruction prompt of Stanford Alpaca.
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/conversation.h"

namespace loongforge::data {

struct PlainTurn {
  std::string prompt;  // all that stands before the answer since the previous one
  std::string answer;  // empty after the last prompt of a conversation that waits for an answer
};

// Error(kUsage) that lists the known templates when name is none of them.
void check_plain_template(std::string_view name);

// The turns of a conversation; each answer is followed by the end token. Text after the last answer
// becomes a turn without answer. Error(kBadData) naming the record for what the template has no
// place for (tools, an answer without a question).
std::vector<PlainTurn> plain_turns(std::string_view name, const Conversation& conversation);

}  // namespace loongforge::data
