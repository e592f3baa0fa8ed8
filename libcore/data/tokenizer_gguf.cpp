#include "data/tokenizer_gguf.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "data/gguf_merges.h"
#include "data/vocabulary.h"

namespace loongforge::data {
namespace {

using formats::GgufFile;
using support::Json;

constexpr const char* kTokens = "tokenizer.ggml.tokens";

// tokenizer.ggml.token_type
constexpr int64_t kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

constexpr const char* kSpace = "\xE2\x96\x81";  // U+2581, SentencePiece's space

enum class Split { kGpt2, kDigitsGpt2, kLlama3, kQwen2, kTekken, kDefault };

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
    {"refact", Split::kDigitsGpt2}, {"command-r", Split::kDigitsGpt2},
    {"tekken", Split::kTekken},     {"default", Split::kDefault}};

constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char* kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// What llama.cpp splits by, one after the other, where a file's maker knew no name.
constexpr const char* kDefaultPatterns[] = {
    R"([\p{P}\$\+<=>\^~\|]+)",
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))", R"(\p{N}+)",
    R"([0-9][0-9][0-9])"};

// SentencePiece's BPE (scores), against byte-level BPE (merges).
bool is_spm(const GgufFile& file) {
  const std::string& model = file.require_string("tokenizer.ggml.model");
  if (model == "llama" || model == "gpt2") return model == "llama";
  throw_bad_data(file.path().string(), "tokenizer.ggml.model '" + model + "' is not supported",
                 "supported: gpt2 (byte-level BPE), llama (SentencePiece BPE); or give the model's "
                 "Hugging Face files with --tokenizer_path");
}

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
    case Split::kTekken:
      return sequence(split_by(kTekkenPattern), byte_level(false));
    case Split::kDefault: {
      Json::Array parts;
      for (const char* pattern : kDefaultPatterns) parts.push_back(split_by(pattern));
      parts.push_back(byte_level(false));
      return object({{"type", "Sequence"}, {"pretokenizers", Json(std::move(parts))}});
    }
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
  return flag.has_value() ? *flag : is_spm(file) || is_llama3(find_pre(file));
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
  if (bos.empty() && eos.empty()) return is_spm(file) ? Json() : byte_level(true);
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

Json bpe_model(std::initializer_list<std::pair<const char*, Json>> members) {
  Json model = object({{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"ignore_merges", false}});
  for (const auto& [key, value] : members) model.set(key, value);
  return model;
}

Json sequence_of(const char* list, Json::Array parts) {
  return object({{"type", "Sequence"}, {list, Json(std::move(parts))}});
}

Json string_replace(const char* from, const char* to) {
  return object({{"type", "Replace"}, {"pattern", object({{"String", from}})}, {"content", to}});
}

void set_byte_level_parts(const GgufFile& file, Json vocab, Json& out) {
  const PreName& pre = find_pre(file);
  const auto* merges = file.get_strings("tokenizer.ggml.merges");
  if (merges == nullptr) throw_bad_data(file.path().string(), "tokenizer.ggml.merges is missing");
  const bool whole_words = is_llama3(pre) || pre.split == Split::kTekken;
  if (pre.split == Split::kQwen2) out.set("normalizer", object({{"type", "NFC"}}));
  out.set("pre_tokenizer", pre_tokenizer(pre.split));
  out.set("decoder", byte_level(true));
  out.set("model", bpe_model({{"ignore_merges", whole_words},
                              {"vocab", std::move(vocab)},
                              {"merges", Json(Json::Array(merges->begin(), merges->end()))}}));
}

bool adds_space(const GgufFile& file) {
  return file.get_bool("tokenizer.ggml.add_space_prefix").value_or(true);
}

void set_spm_parts(const GgufFile& file, const std::vector<std::string>& tokens,
                   const std::vector<int64_t>& types, Json vocab, Json& out) {
  const std::string where = file.path().string();
  const auto* scores = file.get_doubles("tokenizer.ggml.scores");
  if (scores == nullptr || scores->size() != tokens.size())
    throw_bad_data(where, "tokenizer.ggml.scores has " +
                              std::to_string(scores == nullptr ? 0 : scores->size()) +
                              " entries, tokenizer.ggml.tokens has " +
                              std::to_string(tokens.size()));
  std::vector<bool> takes_part(tokens.size());
  Json unk;
  bool bytes = false;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!std::isfinite((*scores)[id]))
      throw_bad_data(where, "the score of token " + std::to_string(id) + " is no number");
    takes_part[id] = types[id] != kControl && types[id] != kUnknown && types[id] != kByte &&
                     types[id] != kUnused;
    if (types[id] == kUnknown && unk.is_null()) unk = tokens[id];
    bytes = bytes || types[id] == kByte;
  }
  Json::Array normalizers,
      decoders = {string_replace(kSpace, " "), object({{"type", "ByteFallback"}}),
                  object({{"type", "Fuse"}})};
  if (adds_space(file)) {
    normalizers.push_back(object({{"type", "Prepend"}, {"prepend", kSpace}}));
    decoders.push_back(object({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}));
  }
  normalizers.push_back(string_replace(" ", kSpace));
  out.set("normalizer", sequence_of("normalizers", std::move(normalizers)));
  out.set("decoder", sequence_of("decoders", std::move(decoders)));
  out.set("model", bpe_model({{"unk_token", std::move(unk)},
                              {"fuse_unk", true},
                              {"byte_fallback", bytes},
                              {"vocab", std::move(vocab)},
                              {"merges", merges_from_scores(tokens, *scores, takes_part, where)}}));
}

Json read_tokenizer(const GgufFile& file) {
  const auto& tokens = require_tokens(file);
  auto types = token_types(file, tokens.size());
  Json::Object vocab;
  Json added = Json::array();
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (types[id] == kUnused) continue;  // padding of the embedding
    vocab.emplace_back(tokens[id], Json(static_cast<int64_t>(id)));
    bool special = types[id] == kControl || types[id] == kUnknown;
    if (special || types[id] == kUserDefined)
      added.push_back(added_token(static_cast<int64_t>(id), tokens[id], special));
  }
  Json out = object({{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", std::move(added)},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", nullptr},
                     {"post_processor", post_processor(file, tokens)},
                     {"decoder", nullptr},
                     {"model", nullptr}});
  if (is_spm(file)) {
    set_spm_parts(file, tokens, types, Json(std::move(vocab)), out);
  } else {
    set_byte_level_parts(file, Json(std::move(vocab)), out);
  }
  return out;
}

}  // namespace

std::optional<GgufPre> gguf_pre(std::string_view name) {
  for (const PreName& known : kPreNames) {
    if (name != known.name) continue;
    return GgufPre{pre_tokenizer(known.split), known.split == Split::kQwen2,
                   is_llama3(known) || known.split == Split::kTekken};
  }
  return std::nullopt;
}

bool gguf_has_tokenizer(const GgufFile& file) {
  return file.find_meta("tokenizer.ggml.model") != nullptr;
}

Json read_gguf_tokenizer_config(const GgufFile& file) {
  const bool spm = is_spm(file);
  const auto& tokens = require_tokens(file);
  Json config = Json::object();
  config.set("add_bos_token", adds_bos(file));
  config.set("add_eos_token", file.get_bool("tokenizer.ggml.add_eos_token").value_or(false));
  config.set("add_prefix_space", spm && adds_space(file));
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
