// Where tokenizers are found: a folder of Hugging Face files, one of them, a GGUF file.
#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "base/error.h"
#include "base/file.h"
#include "base/paths.h"
#include "data/tokenizer.h"
#include "data/tokenizer_config.h"
#include "data/tokenizer_gguf.h"
#include "data/tokenizer_json.h"
#include "data/tokenizer_spm.h"

namespace loongforge::data {
namespace {

namespace fs = std::filesystem;
using support::Json;

// Everything in a folder that belongs to a tokenizer; chat templates included.
constexpr std::string_view kMoreTemplates = "additional_chat_templates/";
constexpr const char* kFileNames[] = {"tokenizer.json",
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "added_tokens.json",
                                      "vocab.json",
                                      "merges.txt",
                                      "vocab.txt",
                                      "tokenizer.model",
                                      "chat_template.jinja"};

constexpr const char* kSpmName = "tokenizer.model";
constexpr uint64_t kMaxSpmBytes = uint64_t{256} << 20;

bool is_spm(const fs::path& path) { return path.extension() == ".model"; }

bool is_gguf(const fs::path& path) { return path.extension() == ".gguf" && file_exists(path); }

Json::Object added_tokens_json(const Json& json) {
  return json.is_null() ? Json::Object{} : json.as_object("added_tokens.json");
}

// added_tokens.json of older folders: content to id, nothing else.
void add_older_tokens(const fs::path& path, TokenizerConfig& config) {
  std::unordered_set<std::string> known;
  for (const AddedToken& token : config.added_tokens) known.insert(token.content);
  for (const auto& [content, id] : added_tokens_json(read_json_if_present(path.string()))) {
    Json entry = Json::object();
    entry.set("content", content);
    entry.set("id", id);
    AddedToken token = parse_added_token(entry, "added_tokens.json's entry");
    if (known.insert(content).second) config.added_tokens.push_back(std::move(token));
  }
}

}  // namespace

Tokenizer Tokenizer::load(const std::string& path) {
  fs::path file = path;
  if (is_gguf(file)) {
    GgufTokenizer made = read_gguf_tokenizer(formats::GgufFile(file));
    return from_json(made.tokenizer, made.config, made.generation, path);
  }
  if (!path_exists(file)) throw_absent(path, "no such file or folder");
  if (folder_exists(file)) {
    const bool json = path_exists(file / "tokenizer.json");
    file /= !json && path_exists(file / kSpmName) ? kSpmName : "tokenizer.json";
  }
  if (!path_exists(file)) {
    const std::string cache = hub_cache_hint(path);
    throw_no_input(path, "has neither tokenizer.json nor tokenizer.model",
                   !cache.empty() ? cache
                                  : "give a folder with tokenizer.json or tokenizer.model, or a "
                                    "GGUF file, with --tokenizer_path");
  }
  if (file.extension() != ".json" && !is_spm(file))
    throw_bad_data(
        path, "is no tokenizer",
        "give a folder with tokenizer.json or tokenizer.model, such a file, or a GGUF file");
  fs::path folder = file.parent_path();
  TokenizerConfig config =
      parse_tokenizer_config(read_json_if_present((folder / "tokenizer_config.json").string()),
                             read_json_if_present((folder / "special_tokens_map.json").string()),
                             (folder / "tokenizer_config.json").string());
  add_older_tokens(folder / "added_tokens.json", config);
  if (is_spm(file)) {
    const bool known = path_exists(folder / "tokenizer_config.json") ||
                       path_exists(folder / "special_tokens_map.json");
    TokenizerParts parts =
        build_spm_tokenizer(read_text(file, kMaxSpmBytes), config, known, file.string());
    return from_parts(std::move(parts), config,
                      read_json_if_present((folder / "generation_config.json").string()),
                      file.string());
  }
  Json generation = read_json_if_present((folder / "generation_config.json").string());
  return from_parts(build_tokenizer(support::read_json(file.string()), config, file.string()),
                    config, generation, file.string());
}

bool Tokenizer::present(const std::string& path) {
  fs::path file = path;
  if (is_gguf(file)) return gguf_has_tokenizer(formats::GgufFile(file));
  if (!folder_exists(file))
    return path_exists(file) && (file.extension() == ".json" || is_spm(file));
  return path_exists(file / "tokenizer.json") || path_exists(file / kSpmName);
}

bool is_tokenizer_file(std::string_view name) {
  if (name.starts_with(kMoreTemplates))
    return name.ends_with(".jinja") && name.rfind('/') + 1 == kMoreTemplates.size();
  return std::find(std::begin(kFileNames), std::end(kFileNames), name) != std::end(kFileNames);
}

std::vector<TokenizerFile> tokenizer_files(const std::string& path) {
  std::vector<TokenizerFile> files;
  fs::path folder = path;
  if (is_gguf(folder)) {
    formats::GgufFile file(folder);
    if (!gguf_has_tokenizer(file)) return files;
    GgufTokenizer made = read_gguf_tokenizer(file);
    files.push_back({"tokenizer.json", made.tokenizer.dump(1) + "\n"});
    files.push_back({"tokenizer_config.json", made.config.dump(2) + "\n"});
    return files;
  }
  if (!folder_exists(folder)) {
    // A model of another name than the one it is looked for by.
    if (is_spm(folder) && folder.filename() != kSpmName)
      files.push_back({kSpmName, read_text(folder, kMaxSpmBytes)});
    folder = folder.parent_path();
  }
  for (const char* name : kFileNames)
    if (file_exists(folder / name) && (files.empty() || files[0].name != name))
      files.push_back({name, read_text(folder / name)});
  fs::path more = folder / "additional_chat_templates";
  if (!folder_exists(more)) return files;
  for (const fs::path& entry : folder_entries(more))
    if (entry.extension() == ".jinja")
      files.push_back({"additional_chat_templates/" + entry.filename().string(), read_text(entry)});
  return files;
}

}  // namespace loongforge::data
