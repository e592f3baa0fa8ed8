#include "data/chat_turns.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::Json;

bool calls_tool(const Json& message) {
  const Json* calls = message.find("tool_calls");
  return calls != nullptr && !calls->is_null() && !(calls->is_array() && calls->as_array().empty());
}

template <class Render>
auto naming_record(const std::string& where, Render&& render) {
  try {
    return render();
  } catch (const Error& e) {
    const std::string source = e.where().empty() ? "" : e.where() + ": ";
    throw Error(e.code(), where,
                "the chat template refuses this conversation: " + source + e.message(), e.hint());
  }
}

// The same text when white space does not count.
bool equal_but_space(std::string_view a, std::string_view b) {
  const auto next = [](std::string_view text, size_t& at) -> int64_t {
    while (at < text.size()) {
      int length = 0;
      const uint32_t c = support::decode_utf8(text.data() + at, &length);
      at += static_cast<size_t>(length);
      if (!support::is_white_space(c)) return c;
    }
    return -1;
  };
  for (size_t i = 0, j = 0;;) {
    const int64_t x = next(a, i), y = next(b, j);
    if (x != y) return false;
    if (x < 0) return true;
  }
}

std::string_view trim_end(std::string_view text) {
  while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != text.npos)
    text.remove_suffix(1);
  return text;
}

// Finds the assistant's words of one conversation. They are told from the template's own text by
// rendering the conversation once more with a mark in place of a turn's content: what stands before
// and after the mark is the template's. A template may look into the content (Qwen3 takes earlier
// turns' thoughts out, and puts an empty block for thoughts in front of the last turn), so what is
// found is compared with the content before it is believed.
class TurnFinder {
 public:
  TurnFinder(const ChatTemplate& chat, const Conversation& conversation, const std::string& text)
      : chat_(chat),
        messages_(conversation.messages.as_array()),
        extra_(template_variables(conversation)),
        where_(conversation.where),
        text_(text) {
    for (int n = 0; text_.find(mark_) != text_.npos; ++n) mark_ = "LfAnswer" + std::to_string(n);
  }

  AssistantTurn find(size_t index) const;

 private:
  struct Split {
    std::string before, after;
  };

  const std::string& content(size_t index) const {
    return messages_[index].find("content")->as_string();
  }
  bool calls_tools(size_t index) const {
    const Json* calls = messages_[index].find("tool_calls");
    return calls != nullptr && !calls->is_null();
  }
  [[noreturn]] void fail(size_t index, const char* why) const {
    throw_bad_data(where_,
                   "the assistant's text of messages[" + std::to_string(index) +
                       "] cannot be located in what the chat template made of it: " + why,
                   "use --template alpaca, or a chat template with {% generation %} blocks");
  }
  std::string render(Json::Array messages, bool prompt) const {
    return naming_record(where_,
                         [&] { return chat_.render(Json(std::move(messages)), prompt, extra_); });
  }
  // What is around the words of messages[index] when only the first `count` messages are rendered.
  std::optional<Split> split(size_t index, size_t count, bool with_calls) const;
  std::optional<size_t> prompt_end(size_t index) const;
  size_t closing_size(size_t index, const std::string& after) const;
  std::optional<size_t> words_begin(size_t index, const Split& around, size_t end) const;
  bool renders_the_same(size_t index, std::string_view words) const;

  const ChatTemplate& chat_;
  const Json::Array& messages_;
  const Json extra_;
  const std::string& where_;
  const std::string& text_;
  std::string mark_ = "LfAnswer";
};

std::optional<TurnFinder::Split> TurnFinder::split(size_t index, size_t count,
                                                   bool with_calls) const {
  Json::Array messages(messages_.begin(), messages_.begin() + static_cast<ptrdiff_t>(count));
  messages[index].set("content", mark_);
  if (!with_calls) messages[index].erase("tool_calls");
  const std::string probe = render(std::move(messages), false);
  const size_t at = probe.find(mark_);
  if (at == probe.npos || probe.find(mark_, at + 1) != probe.npos) return std::nullopt;
  return Split{probe.substr(0, at), probe.substr(at + mark_.size())};
}

// Where the prompt that asks for this turn ends in the text, if it is a part of it as it stands.
std::optional<size_t> TurnFinder::prompt_end(size_t index) const {
  if (index == 0) return std::nullopt;
  const std::string prompt =
      render({messages_.begin(), messages_.begin() + static_cast<ptrdiff_t>(index)}, true);
  if (!text_.starts_with(prompt)) return std::nullopt;
  return prompt.size();
}

bool TurnFinder::renders_the_same(size_t index, std::string_view words) const {
  Json::Array messages = messages_;
  messages[index].set("content", words);
  return render(std::move(messages), false) == text_;
}

// How much of what follows the words belongs to this turn: what also follows when it is the last.
size_t TurnFinder::closing_size(size_t index, const std::string& after) const {
  if (index + 1 == messages_.size()) return after.size();
  const std::optional<Split> alone = split(index, index + 1, false);
  if (!alone) return 0;
  const auto [a, b] =
      std::mismatch(after.begin(), after.end(), alone->after.begin(), alone->after.end());
  return static_cast<size_t>(a - after.begin());
}

std::optional<size_t> TurnFinder::words_begin(size_t index, const Split& around, size_t end) const {
  const std::string& said = content(index);
  const auto words_from = [&](size_t begin) {
    return std::string_view(text_).substr(begin, end - begin);
  };
  const size_t begin = around.before.size();
  const bool stable = begin <= end && text_.starts_with(around.before);
  if (stable && (calls_tools(index) || equal_but_space(words_from(begin), said))) return begin;
  const std::optional<size_t> prompt = prompt_end(index);
  if (prompt && *prompt <= end &&
      (calls_tools(index) || equal_but_space(words_from(*prompt), said)))
    return prompt;
  if (!stable) return std::nullopt;
  // A part of the content was left out, and what is left is all that the template looked at.
  const std::string_view words = words_from(begin);
  const std::string_view kept = trim_end(words);
  const bool left = !kept.empty() && trim_end(said).ends_with(kept);
  return left && renders_the_same(index, words) ? std::optional(begin) : std::nullopt;
}

AssistantTurn TurnFinder::find(size_t index) const {
  const std::optional<Split> around = split(index, messages_.size(), true);
  if (!around) fail(index, "it does not stand there once");
  // Calls belong to the words: what follows them is seen without them.
  const std::optional<Split> without =
      calls_tools(index) ? split(index, messages_.size(), false) : around;
  if (!without || !text_.ends_with(without->after)) fail(index, "what follows it depends on it");
  AssistantTurn turn;
  turn.end = text_.size() - without->after.size();
  turn.closing_end = turn.end + closing_size(index, without->after);
  const std::optional<size_t> begin = words_begin(index, *around, turn.end);
  if (!begin) fail(index, "the template changes it");
  turn.begin = *begin;
  // White space that the prompt leaves to the answer (Llama 2's "[/INST]") is the model's to say.
  if (turn.begin > 0 && is_blank(std::string_view(text_).substr(turn.begin - 1, 1))) {
    const std::optional<size_t> prompt = prompt_end(index);
    if (prompt && *prompt < turn.begin &&
        is_blank(std::string_view(text_).substr(*prompt, turn.begin - *prompt)))
      turn.begin = *prompt;
  }
  // Thoughts given apart from the content are the assistant's as well.
  const Json* thoughts = messages_[index].find("reasoning_content");
  if (thoughts != nullptr && thoughts->is_string() && !is_blank(thoughts->as_string())) {
    const std::optional<size_t> prompt = prompt_end(index);
    const std::string_view trimmed = trim_end(thoughts->as_string());
    if (prompt && *prompt < turn.begin &&
        std::string_view(text_).substr(*prompt, turn.begin - *prompt).find(trimmed) !=
            std::string_view::npos)
      turn.begin = *prompt;
  }
  return turn;
}

// A template that knows no tools leaves them out without a word, and the model would learn to
// answer nothing where it should call one. What a template makes nothing of is seen by taking it
// away.
void check_tools(const ChatTemplate& chat, const Conversation& conversation, bool prompt,
                 const std::string& text) {
  const Json::Array& messages = conversation.messages.as_array();
  const auto refuse_if_same = [&](Json::Array changed, const Json& variables,
                                  const std::string& what) {
    std::string other;
    try {
      other = chat.render(Json(std::move(changed)), prompt, variables);
    } catch (const Error&) {
      return;  // it looks at what was taken away
    }
    if (other == text)
      throw_bad_data(conversation.where, "the chat template leaves out " + what,
                     "use a model whose chat template knows tools, or leave such records out");
  };
  const Json variables = template_variables(conversation);
  if (!conversation.tools.is_null()) {
    Json without = variables;
    without.erase("tools");
    refuse_if_same(messages, without, "the tools of this conversation");
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string name = " messages[" + std::to_string(i) + "]";
    if (calls_tool(messages[i])) {
      Json::Array changed = messages;
      changed[i].erase("tool_calls");
      refuse_if_same(std::move(changed), variables, "the tool calls of" + name);
    }
    if (messages[i].find("role")->as_string() == "tool" &&
        !is_blank(messages[i].find("content")->as_string())) {
      Json::Array changed = messages;
      changed[i].set("content", "");
      refuse_if_same(std::move(changed), variables, "the tool's answer in" + name);
    }
  }
}

}  // namespace

Json template_variables(const Conversation& conversation) {
  Json variables = Json::object();
  variables.set("date_string", "26 Jul 2024");  // what Llama 3.1's template says without a clock
  if (!conversation.tools.is_null()) variables.set("tools", conversation.tools);
  return variables;
}

std::string render_chat(const ChatTemplate& any, const Conversation& conversation,
                        bool add_generation_prompt) {
  const ChatTemplate& chat = any.suited(!conversation.tools.is_null());
  std::string text = naming_record(conversation.where, [&] {
    return chat.render(conversation.messages, add_generation_prompt,
                       template_variables(conversation));
  });
  check_tools(chat, conversation, add_generation_prompt, text);
  return text;
}

ChatText render_turns(const ChatTemplate& any, const Conversation& conversation) {
  const ChatTemplate& chat = any.suited(!conversation.tools.is_null());
  ChatText result;
  if (chat.has_generation_blocks()) {
    RenderedChat rendered = naming_record(conversation.where, [&] {
      return chat.render_with_spans(conversation.messages, false, template_variables(conversation));
    });
    result.text = std::move(rendered.text);
    check_tools(chat, conversation, false, result.text);
    result.marked_by_template = true;
    for (const auto& [begin, end] : rendered.generation_spans)
      result.turns.push_back({begin, end, end});
    return result;
  }
  result.text = render_chat(chat, conversation, false);
  const TurnFinder finder(chat, conversation, result.text);
  const Json::Array& messages = conversation.messages.as_array();
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].find("role")->as_string() != "assistant") continue;
    const Json* calls = messages[i].find("tool_calls");
    if (is_blank(messages[i].find("content")->as_string()) &&
        (calls == nullptr || calls->is_null()))
      continue;
    result.turns.push_back(finder.find(i));
  }
  return result;
}

}  // namespace loongforge::data
