// Prompts for generation, from a file.
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "data/chat_turns.h"
#include "data/dataset.h"
#include "data/plain_template.h"
#include "data/record_reader.h"
#include "data/sample_builder.h"

namespace loongforge::data {
namespace {

using support::Json;

Conversation one_question(const std::string& text, const std::string& where) {
  if (is_blank(text)) throw_bad_data(where, "the prompt is empty");
  Json message = Json::object();
  message.set("role", "user");
  message.set("content", text);
  Conversation conversation;
  conversation.where = where;
  conversation.messages = Json::array();
  conversation.messages.push_back(std::move(message));
  return conversation;
}

Conversation read_prompt(const Record& record) {
  if (record.value.is_null()) return one_question(record.text, record.where);
  if (record.value.contains("prompt"))
    return one_question(string_member(record.value, "prompt", record.where), record.where);
  if (!record.value.contains("messages"))
    throw_bad_data(record.where, "the record has neither \"prompt\" nor \"messages\"");
  Conversation conversation = read_messages(record);
  const Json& last = conversation.messages.as_array().back();
  if (last.find("role")->as_string() == "assistant")
    throw_bad_data(record.where,
                   "the last message is the assistant's: nothing waits for an answer");
  return conversation;
}

}  // namespace

std::vector<Prompt> load_prompts(const std::filesystem::path& file, const PromptStyle& style,
                                 const Tokenizer& tokenizer) {
  if (style.chat == nullptr) check_plain_template(style.name);
  const MappedFile mapped(file);
  const std::string extension = file.extension().string();
  const bool json = extension == ".json" || extension == ".jsonl";
  RecordReader reader({reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()},
                      file.string(),
                      json ? RecordReader::Plain::kNo : RecordReader::Plain::kOnePerLine);
  const SampleBuilder builder(tokenizer);
  std::vector<Prompt> prompts;
  for (Record record; reader.next(record);) {
    const Conversation conversation = read_prompt(record);
    Prompt prompt;
    prompt.text = conversation.messages.as_array().back().find("content")->as_string();
    prompt.ids = style.chat != nullptr
                     ? builder.chat_prompt(render_chat(*style.chat, conversation, true))
                     : builder.plain_prompt(plain_turns(style.name, conversation));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace loongforge::data
