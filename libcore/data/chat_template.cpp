#include "data/chat_template.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/paths.h"
#include "data/jinja/interpreter.h"
#include "data/jinja/lexer.h"
#include "data/jinja/parser.h"
#include "data/tokenizer_config.h"
#include "data/tokenizer_gguf.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

namespace fs = std::filesystem;
using support::Json;

constexpr uint64_t kMaxTemplateBytes = uint64_t{4} << 20;

struct Found {
  std::string name, source, where;
};

// The templates of a folder, the one from chat_template.jinja before those of
// tokenizer_config.json.
std::vector<Found> folder_templates(const fs::path& folder, const TokenizerConfig& config) {
  std::vector<Found> found;
  fs::path file = folder / "chat_template.jinja";
  if (path_exists(file))
    found.push_back({"default", read_text(file, kMaxTemplateBytes), file.string()});
  fs::path more = folder / "additional_chat_templates";
  if (folder_exists(more))
    for (const fs::path& entry : folder_entries(more))
      if (entry.extension() == ".jinja")
        found.push_back(
            {entry.stem().string(), read_text(entry, kMaxTemplateBytes), entry.string()});
  for (const auto& [name, source] : config.chat_templates)
    found.push_back(
        {name, source, (folder / "tokenizer_config.json").string() + ": chat_template"});
  return found;
}

const Found& choose(const std::vector<Found>& found, std::string_view name,
                    const std::string& path) {
  std::string_view wanted = name.empty() ? "default" : name;
  std::string names;
  for (const Found& f : found) {
    if (f.name == wanted) return f;
    names += (names.empty() ? "" : ", ") + f.name;
  }
  if (name.empty() && found.size() == 1) return found[0];
  throw_bad_data(path, "has no chat template named '" + std::string(wanted) + "'",
                 "its templates: " + names);
}

}  // namespace

struct ChatTemplate::Impl {
  std::string source, where;
  Json special_tokens;
  jinja::Template tree;
  std::optional<ChatTemplate> tool_use;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

ChatTemplate ChatTemplate::from_source(std::string_view source, Json special_tokens,
                                       std::string_view where) {
  if (source.size() > kMaxTemplateBytes)
    throw_bad_data(std::string(where), "a chat template of more than 4 MB is not supported");
  if (size_t at = support::find_invalid_utf8(source); at != support::kUtf8Valid)
    throw_bad_data(std::string(where),
                   "the chat template is not valid UTF-8 at byte " + std::to_string(at));
  auto impl = std::make_unique<Impl>();
  impl->source = source;
  impl->where = where;
  impl->special_tokens = special_tokens.is_null() ? Json::object() : std::move(special_tokens);
  try {
    impl->tree = jinja::parse_template(source);
  } catch (const jinja::SyntaxFault& f) {
    throw_bad_data(impl->where + ":" + std::to_string(f.line), "chat template: " + f.message,
                   f.hint);
  }
  return ChatTemplate(std::move(impl));
}

std::optional<ChatTemplate> ChatTemplate::load(const std::string& path, std::string_view name) {
  fs::path file = path;
  if (file.extension() == ".gguf" && file_exists(file)) {
    formats::GgufFile gguf(file);
    if (!gguf_has_tokenizer(gguf)) return std::nullopt;
    TokenizerConfig config = parse_tokenizer_config(read_gguf_tokenizer_config(gguf), Json(), path);
    if (config.chat_templates.empty()) return std::nullopt;
    return from_source(config.chat_templates[0].second, config.special_tokens,
                       path + ": tokenizer.chat_template");
  }
  if (!path_exists(file)) throw_absent(path, "no such file or folder");
  if (!folder_exists(file)) file = file.parent_path();
  TokenizerConfig config =
      parse_tokenizer_config(read_json_if_present((file / "tokenizer_config.json").string()),
                             read_json_if_present((file / "special_tokens_map.json").string()),
                             (file / "tokenizer_config.json").string());
  std::vector<Found> found = folder_templates(file, config);
  if (found.empty()) return std::nullopt;
  const Found& chosen = choose(found, name, path);
  ChatTemplate made = from_source(chosen.source, config.special_tokens, chosen.where);
  for (const Found& other : found) {
    if (!name.empty() || other.name != "tool_use" || &other == &chosen || made.impl_->tool_use)
      continue;
    made.impl_->tool_use.emplace(from_source(other.source, config.special_tokens, other.where));
  }
  return made;
}

RenderedChat ChatTemplate::render_context(const Json& context,
                                          std::optional<std::time_t> now) const {
  const jinja::Value values = jinja::Value::from_json(context);
  if (!values.is_dict())
    throw_bad_data(impl_->where, "a chat template's context is an object, not " +
                                     std::string(context.type_name()));
  jinja::Interpreter interpreter(impl_->tree, values, now);
  try {
    interpreter.run();
  } catch (const jinja::Fault& f) {
    throw_bad_data(impl_->where + ":" + std::to_string(interpreter.line()), f.message, f.hint);
  }
  return {std::move(interpreter.output()), interpreter.generation_spans()};
}

RenderedChat ChatTemplate::render_with_spans(const Json& messages, bool add_generation_prompt,
                                             const Json& extra) const {
  Json context = impl_->special_tokens;
  context.set("messages", messages);
  context.set("add_generation_prompt", add_generation_prompt);
  // Defined without a value, as transformers passes them.
  context.set("tools", Json());
  context.set("documents", Json());
  if (!extra.is_null())
    for (const auto& [name, value] : extra.as_object("the chat template's variables"))
      context.set(name, value);
  return render_context(context);
}

std::string ChatTemplate::render(const Json& messages, bool add_generation_prompt,
                                 const Json& extra) const {
  return render_with_spans(messages, add_generation_prompt, extra).text;
}

const ChatTemplate& ChatTemplate::suited(bool tools) const {
  return tools && impl_->tool_use ? *impl_->tool_use : *this;
}

bool ChatTemplate::has_generation_blocks() const { return impl_->tree.has_generation; }
const std::string& ChatTemplate::source() const { return impl_->source; }

}  // namespace loongforge::data
