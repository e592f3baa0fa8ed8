// Chat templates: the model's own Jinja program that turns messages into the text the model was
// trained on. The environment is the one transformers gives them: trim_blocks, lstrip_blocks, loop
// controls, raise_exception, strftime_now, tojson without ASCII escapes, {% generation %} blocks,
// no access to anything outside the values given. Whatever lies outside the supported language ends
// in Error(kBadData) that names the construct, file and line. Thread-safety: immutable after load;
// render() may be called from several threads.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/api.h"
#include "support/json.h"

namespace loongforge::data {

struct RenderedChat {
  std::string text;
  // Byte ranges of text that {% generation %} blocks produced: the assistant's words. Empty when
  // the template has none.
  std::vector<std::pair<size_t, size_t>> generation_spans;
};

class LF_API ChatTemplate {
 public:
  // The template of a tokenizer folder (chat_template.jinja, else tokenizer_config.json's
  // chat_template) or a GGUF file (tokenizer.chat_template), with its special tokens. name picks
  // one of several ("default" when empty, with "tool_use" for conversations with tools; an unknown
  // name is an Error that lists the known ones).
  // nullopt: the model has none.
  static std::optional<ChatTemplate> load(const std::string& path, std::string_view name = {});
  // source: the template. special_tokens: object with bos_token, eos_token, ... where: name of the
  // source in errors.
  static ChatTemplate from_source(std::string_view source, support::Json special_tokens,
                                  std::string_view where);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // messages: array of {role, content, ...}. extra: object with further variables (tools,
  // date_string, enable_thinking). raise_exception(text) in the template becomes Error(kBadData)
  // whose message is text.
  std::string render(const support::Json& messages, bool add_generation_prompt,
                     const support::Json& extra = {}) const;
  RenderedChat render_with_spans(const support::Json& messages, bool add_generation_prompt,
                                 const support::Json& extra = {}) const;
  // Any context: what render() builds from its arguments. now: what strftime_now sees (default: the
  // clock).
  RenderedChat render_context(const support::Json& context,
                              std::optional<std::time_t> now = {}) const;

  // This template, or the one named "tool_use" beside it where a conversation has tools.
  const ChatTemplate& suited(bool tools) const;

  bool has_generation_blocks() const;
  const std::string& source() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loongforge::data
