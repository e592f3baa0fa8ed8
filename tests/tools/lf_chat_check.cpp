// lf-chat-check TOKENIZER_DIR_OR_GGUF FILE.chat.jsonl
// Renders the model's chat template for every line {messages, add_generation_prompt, text, ...} and
// compares; other members of a line are variables of the template. A file whose first line is
// {"context": ...} holds templates of its own, {template, text or error}, rendered in that context.
// Exit 1 on a difference.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "data/chat_template.h"
#include "support/json.h"

namespace {

using loongforge::data::ChatTemplate;
using loongforge::support::Json;

struct Counts {
  int lines = 0, wrong = 0;
};

void report(Counts& counts, const std::string& where, const std::string& expected,
            const std::string& found) {
  ++counts.lines;
  if (expected == found) return;
  ++counts.wrong;
  std::printf("%s: differs\n  expected: %s\n  found:    %s\n", where.c_str(),
              Json(expected).dump().c_str(), Json(found).dump().c_str());
}

void check_chat(Counts& counts, const ChatTemplate& chat, const Json& line,
                const std::string& where) {
  // The golden renders of llama3 were made with this date.
  Json extra = Json::object();
  extra.set("date_string", "26 Jul 2024");
  for (const auto& [name, value] : line.as_object("line"))
    if (name != "messages" && name != "add_generation_prompt" && name != "text")
      extra.set(name, value);
  report(counts, where, line.at("text", "line").as_string("text"),
         chat.render(line.at("messages", "line"), line.get_bool("add_generation_prompt", false),
                     extra));
}

void check_template(Counts& counts, const Json& context, const Json& line,
                    const std::string& where) {
  std::string found;
  try {
    const std::string& source = line.at("template", "line").as_string("template");
    found = ChatTemplate::from_source(source, Json(), where).render_context(context).text;
  } catch (const loongforge::Error& e) {
    // The message alone: an expected error is what raise_exception said.
    found = "error: " + (line.contains("error") ? e.message() : std::string(e.what()));
  }
  report(counts, where,
         line.contains("error") ? "error: " + line.get_string("error", "")
                                : line.get_string("text", ""),
         found);
}

int run(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: lf-chat-check TOKENIZER_DIR_OR_GGUF FILE.chat.jsonl\n");
    return 2;
  }
  std::string file = argv[2], content = loongforge::read_text(file);
  std::optional<ChatTemplate> chat;
  std::optional<Json> context;
  Counts counts;
  int number = 0;
  for (size_t at = 0; at < content.size();) {
    size_t end = std::min(content.find('\n', at), content.size());
    std::string where = file + ":" + std::to_string(++number);
    std::string_view text = std::string_view(content).substr(at, end - at);
    at = end + 1;
    if (text.empty()) continue;
    Json line = Json::parse(text, where);
    if (const Json* given = line.find("context")) {
      context = *given;
    } else if (context.has_value()) {
      check_template(counts, *context, line, where);
    } else {
      if (!chat.has_value()) chat = ChatTemplate::load(argv[1]);
      if (!chat.has_value()) loongforge::throw_no_input(argv[1], "has no chat template");
      check_chat(counts, *chat, line, where);
    }
  }
  std::printf("%s: %d renders, %d differ\n", file.c_str(), counts.lines, counts.wrong);
  if (counts.lines == 0) loongforge::throw_bad_data(file, "has no lines to check");
  return counts.wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "lf-chat-check: %s\n", e.what());
    return 1;
  }
}
