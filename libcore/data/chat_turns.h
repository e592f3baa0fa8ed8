// A conversation as its chat template renders it, and where in that text the assistant's own words
// stand: what the model is to learn, without anything that the template puts in by itself.
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/chat_template.h"
#include "data/conversation.h"

namespace loongforge::data {

// Byte ranges of ChatText::text.
struct AssistantTurn {
  size_t begin = 0, end = 0;  // the assistant's words
  // What closes the turn ends here: the end token and what the template puts after it.
  size_t closing_end = 0;
};

struct ChatText {
  std::string text;
  std::vector<AssistantTurn> turns;  // in order; turns without words are left out
  // The template marks the words itself ({% generation %}), end tokens included.
  bool marked_by_template = false;
};

// What templates see besides the messages. The day is fixed, so that a dataset is the same whenever
// a run is started or resumed.
support::Json template_variables(const Conversation& conversation);

// The template's render(); its faults name the record. Error(kBadData) as well where it leaves out
// tools, calls or a tool's answer that the conversation has.
std::string render_chat(const ChatTemplate& chat, const Conversation& conversation,
                        bool add_generation_prompt);

// Error(kBadData) naming the record where the template refuses the conversation, or where the
// assistant's words cannot be found in what it made of them.
ChatText render_turns(const ChatTemplate& chat, const Conversation& conversation);

}  // namespace loongforge::data
