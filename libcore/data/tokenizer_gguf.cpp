#include "data/tokenizer_gguf.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "data/vocabulary.h"

namespace loongforge::data {
namespace {

using formats::GgufFile;
using support::Json;

constexpr const char* kTokens = "tokenizer.ggml.tokens";

// tokenizer.ggml.token_type
constexpr int64_t kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5;

enum class Split { kGpt2, kDigitsGpt2, kLlama3, kQwen2 };

struct PreName {
  const char* name;
  Split split;
};
// tokenizer.ggml.pre names the model whose pre-tokenizer was recognised when the file was made.
// smollm: the reference ids are those of transformers reading the GGUF file, which splits by
// GPT-2's pattern alone.
constexpr PreName kPreNames[] = {
    {"gpt-2", Split::kGpt2},        {"phi-2", Split::kGpt2},
    {"mpt", Split::kGpt2},          {"olmo", Split::kGpt2},
    {"dbrx", Split::kLlama3},       {"smaug-bpe", Split::kLlama3},
    {"llama3", Split::kLlama3},     {"llama-v3", Split::kLlama3},
    {"llama-bpe", Split::kLlama3},  {"falcon3", Split::kLlama3},
    {"qwen2", Split::kQwen2},       {"deepseek-r1-qwen", Split::kQwen2},
    {"smollm", Split::kGpt2},       {"starcoder", Split::kDigitsGpt2},
    {"refact", Split::kDigitsGpt2}, {"command-r", Split::kDigitsGpt2}};

constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

const PreName& find_pre(const GgufFile& file) {
  const std::string& name = file.require_string("tokenizer.ggml.pre");
  for (const PreName& known : kPreNames)
    if (name == known.name) return known;
  std::string names;
  for (const PreName& known : kPreNames)
    names += std::string(names.empty() ? "" : ", ") + known.name;
  throw_bad_data(
      file.path().string(), "tokenizer.ggml.pre '" + name + "' is not supported",
      "known: " + names + "; or give the model's Hugging Face files with --tokenizer_path");
}

bool is_llama3(const PreName& pre) {
  std::string_view name = pre.name;
  return name == "llama3" || name == "llama-v3" || name == "llama-bpe" || name == "falcon3";
}

Json object(std::initializer_list<std::pair<const char*, Json>> members) {
  Json::Object made;
  for (const auto& [key, value] : members) made.emplace_back(key, value);
  return Json(std::move(made));
}

Json array(std::initializer_list<Json> items) { return Json(Json::Array(items)); }

Json byte_level(bool use_regex) {
  return object({{"type", "ByteLevel"},
                 {"add_prefix_space", false},
                 {"trim_offsets", true},
                 {"use_regex", use_regex}});
}

Json split_by(const char* pattern) {
  return object({{"type", "Split"},
                 {"pattern", object({{"Regex", pattern}})},
                 {"behavior", "Isolated"},
                 {"invert", false}});
}

Json pre_tokenizer(Split split) {
  auto sequence = [](Json first, Json second) {
    return object(
        {{"type", "Sequence"}, {"pretokenizers", array({std::move(first), std::move(second)})}});
  };
  switch (split) {
    case Split::kGpt2:
      return byte_level(true);
    case Split::kDigitsGpt2:
      return sequence(object({{"type", "Digits"}, {"individual_digits", true}}), byte_level(true));
    case Split::kLlama3:
      return sequence(split_by(kLlama3Pattern), byte_level(false));
    case Split::kQwen2:
      return sequence(split_by(kQwen2Pattern), byte_level(false));
  }
  return Json();
}

const std::vector<std::string>& require_tokens(const GgufFile& file) {
  const auto* tokens = file.get_strings(kTokens);
  if (tokens == nullptr || tokens->empty())
    throw_bad_data(file.path().string(), std::string(kTokens) + " is missing");
  if (tokens->size() > static_cast<size_t>(Vocabulary::kMaxId))
    throw_bad_data(file.path().string(), std::string(kTokens) + " has too many entries");
  return *tokens;
}

// The token an id key names; empty when the key is absent.
std::string named_token(const GgufFile& file, const std::vector<std::string>& tokens,
                        const char* key) {
  auto id = file.get_int(key);
  if (!id.has_value() || *id < 0 || *id == int64_t{UINT32_MAX}) return {};
  if (*id >= static_cast<int64_t>(tokens.size()))
    throw_bad_data(file.path().string(), std::string(key) + " " + std::to_string(*id) +
                                             " is beyond the vocabulary of " +
                                             std::to_string(tokens.size()));
  return tokens[static_cast<size_t>(*id)];
}

std::vector<int64_t> token_types(const GgufFile& file, size_t count) {
  const auto* types = file.get_ints("tokenizer.ggml.token_type");
  if (types == nullptr) return std::vector<int64_t>(count, 1);
  if (types->size() != count)
    throw_bad_data(file.path().string(),
                   "tokenizer.ggml.token_type has " + std::to_string(types->size()) +
                       " entries, tokenizer.ggml.tokens has " + std::to_string(count));
  return *types;
}

Json added_token(int64_t id, const std::string& content, bool special) {
  return object({{"id", id},
                 {"content", content},
                 {"single_word", false},
                 {"lstrip", false},
                 {"rstrip", false},
                 {"normalized", false},
                 {"special", special}});
}

bool adds_bos(const GgufFile& file) {
  auto flag = file.get_bool("tokenizer.ggml.add_bos_token");
  return flag.has_value() ? *flag : is_llama3(find_pre(file));
}

Json special_item(const std::string& token) {
  return object({{"SpecialToken", object({{"id", token}, {"type_id", 0}})}});
}

Json post_processor(const GgufFile& file, const std::vector<std::string>& tokens) {
  std::string bos =
      adds_bos(file) ? named_token(file, tokens, "tokenizer.ggml.bos_token_id") : std::string();
  bool add_eos = file.get_bool("tokenizer.ggml.add_eos_token").value_or(false);
  std::string eos =
      add_eos ? named_token(file, tokens, "tokenizer.ggml.eos_token_id") : std::string();
  if (bos.empty() && eos.empty()) return byte_level(true);
  Json single = Json::array(), pair = Json::array(), specials = Json::object();
  for (const char* sequence : {"A", "B"}) {
    Json text = object({{"Sequence", object({{"id", sequence}, {"type_id", 0}})}});
    std::vector<Json> items;
    if (!bos.empty()) items.push_back(special_item(bos));
    items.push_back(text);
    if (!eos.empty()) items.push_back(special_item(eos));
    for (const Json& item : items) {
      if (sequence[0] == 'A') single.push_back(item);
      pair.push_back(item);
    }
  }
  for (const std::string& token : {bos, eos}) {
    if (token.empty()) continue;
    int64_t id = std::find(tokens.begin(), tokens.end(), token) - tokens.begin();
    specials.set(
        token,
        object({{"id", token}, {"ids", array({Json(id)})}, {"tokens", array({Json(token)})}}));
  }
  return object({{"type", "TemplateProcessing"},
                 {"single", single},
                 {"pair", pair},
                 {"special_tokens", specials}});
}

void require_byte_level(const GgufFile& file) {
  const std::string& model = file.require_string("tokenizer.ggml.model");
  if (model != "gpt2")
    throw_bad_data(file.path().string(), "tokenizer.ggml.model '" + model + "' is not supported",
                   "supported: gpt2 (byte-level BPE); or give the model's Hugging Face files with "
                   "--tokenizer_path");
}

Json read_tokenizer(const GgufFile& file) {
  const auto& tokens = require_tokens(file);
  auto types = token_types(file, tokens.size());
  const PreName& pre = find_pre(file);
  Json::Object vocab;
  Json added = Json::array();
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (types[id] == kUnused) continue;  // padding of the embedding
    vocab.emplace_back(tokens[id], Json(static_cast<int64_t>(id)));
    bool special = types[id] == kControl || types[id] == kUnknown;
    if (special || types[id] == kUserDefined)
      added.push_back(added_token(static_cast<int64_t>(id), tokens[id], special));
  }
  const auto* merges = file.get_strings("tokenizer.ggml.merges");
  if (merges == nullptr) throw_bad_data(file.path().string(), "tokenizer.ggml.merges is missing");
  Json::Array merge_list(merges->begin(), merges->end());
  Json model = object({{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"ignore_merges", is_llama3(pre)},
                       {"vocab", Json(std::move(vocab))},
                       {"merges", Json(std::move(merge_list))}});
  return object({{"version", "1.0"},
                 {"truncation", nullptr},
                 {"padding", nullptr},
                 {"added_tokens", std::move(added)},
                 {"normalizer", pre.split == Split::kQwen2 ? object({{"type", "NFC"}}) : Json()},
                 {"pre_tokenizer", pre_tokenizer(pre.split)},
                 {"post_processor", post_processor(file, tokens)},
                 {"decoder", byte_level(true)},
                 {"model", std::move(model)}});
}

}  // namespace

bool gguf_has_tokenizer(const GgufFile& file) {
  return file.find_meta("tokenizer.ggml.model") != nullptr;
}

Json read_gguf_tokenizer_config(const GgufFile& file) {
  require_byte_level(file);
  const auto& tokens = require_tokens(file);
  Json config = Json::object();
  config.set("add_bos_token", adds_bos(file));
  config.set("add_eos_token", file.get_bool("tokenizer.ggml.add_eos_token").value_or(false));
  config.set("add_prefix_space", false);
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"},
      {"eos_token", "tokenizer.ggml.eos_token_id"},
      {"pad_token", "tokenizer.ggml.padding_token_id"},
      {"unk_token", "tokenizer.ggml.unknown_token_id"},
      {"sep_token", "tokenizer.ggml.seperator_token_id"},
      {"cls_token", "tokenizer.ggml.cls_token_id"},
      {"mask_token", "tokenizer.ggml.mask_token_id"}};
  for (const auto& [name, key] : kNames)
    if (std::string token = named_token(file, tokens, key); !token.empty()) config.set(name, token);
  if (const std::string* source = file.get_string("tokenizer.chat_template"))
    config.set("chat_template", *source);
  config.set("clean_up_tokenization_spaces", false);
  const std::string* architecture = file.get_string("general.architecture");
  if (architecture != nullptr)
    if (auto length = file.get_int(*architecture + ".context_length"))
      config.set("model_max_length", *length);
  // The class that takes tokenizer.json as it stands.
  config.set("tokenizer_class", "PreTrainedTokenizerFast");
  return config;
}

GgufTokenizer read_gguf_tokenizer(const GgufFile& file) {
  GgufTokenizer made;
  made.config = read_gguf_tokenizer_config(file);
  made.tokenizer = read_tokenizer(file);
  Json stops = Json::array();
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"})
    if (auto id = file.get_int(key); id.has_value() && *id >= 0) stops.push_back(*id);
  made.generation = object({{"eos_token_id", std::move(stops)}});
  return made;
}

}  // namespace loongforge::data
