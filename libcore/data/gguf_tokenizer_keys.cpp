#include "data/gguf_tokenizer_keys.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/paths.h"
#include "data/chat_template.h"
#include "data/spm_proto.h"
#include "data/tokenizer.h"
#include "data/tokenizer_config.h"
#include "data/tokenizer_gguf.h"
#include "support/json.h"

namespace loongforge::data {
namespace {

namespace fs = std::filesystem;
using formats::GgufValue;
using support::Json;

// tokenizer.ggml.token_type
constexpr int64_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

// Ends the attempt: the tokenizer is of a kind that GGUF has no words for.
struct Unsaid {
  std::string why;
};

std::string type_of(const Json& json) {
  return json.is_object() ? json.get_string("type", "") : std::string();
}

// What a pre_tokenizer does, part by part, whatever way it is spelled.
void describe(const Json& json, std::vector<std::string>* parts) {
  const std::string type = type_of(json);
  if (type == "Sequence") {
    for (const Json& each : json.at("pretokenizers").as_array()) describe(each, parts);
  } else if (type == "ByteLevel") {
    if (json.get_bool("add_prefix_space", true))
      throw Unsaid{"its pre_tokenizer puts a space before the text"};
    parts->push_back(json.get_bool("use_regex", true) ? "ByteLevel by words" : "ByteLevel");
  } else if (type == "Split") {
    const Json& pattern = json.at("pattern");
    const Json* regex = pattern.is_object() ? pattern.find("Regex") : nullptr;
    if (regex == nullptr || json.get_string("behavior", "") != "Isolated" ||
        json.get_bool("invert", false))
      throw Unsaid{"its pre_tokenizer has no name in GGUF files"};
    parts->push_back("Split by " + regex->as_string());
  } else if (type == "Digits") {
    parts->push_back(json.get_bool("individual_digits", false) ? "Digits apart" : "Digits");
  } else {
    parts->push_back(type);
  }
}

std::vector<std::string> described(const Json& json) {
  std::vector<std::string> parts;
  describe(json, &parts);
  return parts;
}

// The names that tokenizer.ggml.pre can have, one for each way to split.
constexpr const char* kPreNames[] = {"gpt-2", "starcoder", "llama-bpe", "dbrx", "qwen2", "tekken"};

std::string pre_name(const Json& tokenizer) {
  const Json* pre = tokenizer.find("pre_tokenizer");
  const std::vector<std::string> parts = described(pre == nullptr ? Json() : *pre);
  const bool whole_words = tokenizer.at("model").get_bool("ignore_merges", false);
  for (const char* name : kPreNames) {
    const std::optional<GgufPre> known = gguf_pre(name);
    if (known && described(known->pre_tokenizer) == parts && known->whole_words == whole_words)
      return name;
  }
  throw Unsaid{"its pre_tokenizer has no name in GGUF files"};
}

// Every id's token; those between and behind them up to `rows` are unused.
struct Tokens {
  std::vector<std::string> texts;
  std::vector<int64_t> types;
  std::string where;

  Tokens(int64_t rows, std::string file) : where(std::move(file)) {
    for (int64_t id = 0; id < rows; ++id) texts.push_back("[PAD" + std::to_string(id) + "]");
    types.assign(texts.size(), kUnused);
  }
  void put(const std::string& text, int64_t id, int64_t type) {
    if (id < 0 || id >= static_cast<int64_t>(texts.size())) {
      throw_bad_data(where,
                     "has a token with the id " + std::to_string(id) + ", the embedding has " +
                         std::to_string(texts.size()) + " rows",
                     "resize the embedding, or give the model's own tokenizer");
    }
    texts[static_cast<size_t>(id)] = text;
    types[static_cast<size_t>(id)] = type;
  }
};

Tokens all_tokens(const Json& tokenizer, int64_t rows, const std::string& where) {
  Tokens tokens(rows, where);
  for (const auto& [text, id] : tokenizer.at("model").at("vocab").as_object("vocab"))
    tokens.put(text, id.as_int("a token's id"), kNormal);
  if (const Json* added = tokenizer.find("added_tokens"); added != nullptr && added->is_array()) {
    for (const Json& each : added->as_array()) {
      tokens.put(each.at("content").as_string(), each.at("id").as_int("an added token's id"),
                 each.get_bool("special", false) ? kControl : kUserDefined);
    }
  }
  return tokens;
}

std::pair<std::string, std::string> merge_of(const Json& json) {
  if (json.is_array() && json.as_array().size() == 2)
    return {json.as_array()[0].as_string("a merge"), json.as_array()[1].as_string("a merge")};
  const std::string& text = json.as_string("a merge");
  const size_t space = text.find(' ');
  if (space == std::string::npos) throw Unsaid{"a merge has no two parts"};
  return {text.substr(0, space), text.substr(space + 1)};
}

const Json::Array& merges_of(const Json& tokenizer) {
  return tokenizer.at("model").at("merges").as_array("merges");
}

class Keys {
 public:
  template <class T>
  void set(const char* key, T value) {
    keys.emplace_back(key, GgufValue{std::move(value)});
  }
  formats::GgufKeys keys;
};

void byte_level_keys(const Json& tokenizer, Tokens tokens, Keys* out) {
  const std::string pre = pre_name(tokenizer);
  const Json* normalizer = tokenizer.find("normalizer");
  const bool nfc = normalizer != nullptr && type_of(*normalizer) == "NFC";
  if (normalizer != nullptr && !normalizer->is_null() && !(nfc && gguf_pre(pre)->nfc))
    throw Unsaid{"its normalizer has no name in GGUF files"};
  std::vector<std::string> merges;
  for (const Json& each : merges_of(tokenizer)) {
    const auto [left, right] = merge_of(each);
    if (left.find(' ') != std::string::npos || right.find(' ') != std::string::npos)
      throw Unsaid{"a merge has a space in its parts"};
    merges.push_back(left + " " + right);
  }
  out->set("tokenizer.ggml.model", std::string("gpt2"));
  out->set("tokenizer.ggml.pre", pre);
  out->set("tokenizer.ggml.tokens", std::move(tokens.texts));
  out->set("tokenizer.ggml.token_type", std::move(tokens.types));
  out->set("tokenizer.ggml.merges", std::move(merges));
  out->set("tokenizer.ggml.add_space_prefix", false);
}

// Readers of GGUF's model "llama" have no merges: of all neighbours whose joined text is a token
// they join those of the best score. A token's score is its place among the merges; that is exact
// when every merge of a token stands beside its others and no way to split it is missing.
std::vector<double> scores_of(const Json& tokenizer, const Tokens& tokens) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = 0; i < tokens.texts.size(); ++i) {
    if (tokens.types[i] == kNormal || tokens.types[i] == kUserDefined)
      ids.emplace(tokens.texts[i], i);
  }
  std::vector<double> scores(tokens.texts.size(), 0.0);
  std::vector<int64_t> merged(tokens.texts.size(), 0);
  size_t last = tokens.texts.size();
  double rank = 0;
  for (const Json& each : merges_of(tokenizer)) {
    const auto [left, right] = merge_of(each);
    const auto id = ids.find(left + right);
    if (id == ids.end()) throw Unsaid{"a merge makes no token"};
    const size_t token = id->second;
    if (token != last && merged[token] > 0) throw Unsaid{"its merges are in no order of tokens"};
    if (token != last) rank -= 1.0;
    last = token;
    scores[token] = rank;
    ++merged[token];
  }
  for (const auto& [text, id] : ids) {
    if (tokens.types[id] != kNormal) continue;
    int64_t ways = 0;
    for (size_t i = 1; i < text.size(); ++i) {
      if ((static_cast<uint8_t>(text[i]) & 0xc0) == 0x80) continue;  // inside a character
      ways += ids.contains(text.substr(0, i)) && ids.contains(text.substr(i)) ? 1 : 0;
    }
    if (ways != merged[id]) throw Unsaid{"its merges are not all that its tokens allow"};
    if (ways == 0) scores[id] = rank - 1.0;  // characters
  }
  return scores;
}

bool prepends_space(const Json& json) {
  const std::string type = type_of(json);
  if (type == "Prepend") return true;
  if (type == "Metaspace") return json.get_string("prepend_scheme", "always") != "never";
  if (type == "Sequence") {
    for (const char* list : {"normalizers", "pretokenizers"}) {
      const Json* items = json.find(list);
      if (items == nullptr) continue;
      for (const Json& each : items->as_array()) {
        if (prepends_space(each)) return true;
      }
    }
  }
  return false;
}

bool is_byte_token(std::string_view text) {
  return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>');
}

void spm_keys(const Json& tokenizer, Tokens tokens, Keys* out) {
  const Json& model = tokenizer.at("model");
  const std::string unk = model.get_string("unk_token", "");
  for (size_t i = 0; i < tokens.texts.size(); ++i) {
    if (is_byte_token(tokens.texts[i])) tokens.types[i] = kByte;
    if (!unk.empty() && tokens.texts[i] == unk) tokens.types[i] = kUnknown;
  }
  bool space = false;
  for (const char* part : {"normalizer", "pre_tokenizer"}) {
    if (const Json* json = tokenizer.find(part)) space = space || prepends_space(*json);
  }
  std::vector<double> scores = scores_of(tokenizer, tokens);
  out->set("tokenizer.ggml.model", std::string("llama"));
  out->set("tokenizer.ggml.pre", std::string("default"));
  out->set("tokenizer.ggml.tokens", std::move(tokens.texts));
  out->set("tokenizer.ggml.scores", std::move(scores));
  out->set("tokenizer.ggml.token_type", std::move(tokens.types));
  out->set("tokenizer.ggml.add_space_prefix", space);
}

// tokenizer.model by itself has scores and types of its own.
void spm_model_keys(const fs::path& file, int64_t rows, Keys* out) {
  const SpmProto proto = parse_spm_proto(read_text(file), file.string());
  if (!proto.bpe) throw Unsaid{"it is a unigram model, which GGUF files of decoders do not have"};
  if (proto.remove_extra_whitespaces) throw Unsaid{"it takes spaces out of the text"};
  Tokens tokens(rows, file.string());
  std::vector<double> scores(tokens.texts.size(), 0.0);
  for (size_t i = 0; i < proto.pieces.size(); ++i) {
    const SpmPiece& piece = proto.pieces[i];  // whose types are numbered as GGUF's
    tokens.put(piece.text, static_cast<int64_t>(i), static_cast<int64_t>(piece.type));
    scores[i] = static_cast<double>(piece.score);
  }
  const Json config = read_json_if_present((file.parent_path() / "tokenizer_config.json").string());
  for (const AddedToken& token :
       parse_tokenizer_config(config, Json(), file.string()).added_tokens) {
    if (token.id >= static_cast<int32_t>(proto.pieces.size()))
      tokens.put(token.content, token.id, token.special ? kControl : kUserDefined);
  }
  out->set("tokenizer.ggml.model", std::string("llama"));
  out->set("tokenizer.ggml.pre", std::string("default"));
  out->set("tokenizer.ggml.tokens", std::move(tokens.texts));
  out->set("tokenizer.ggml.scores", std::move(scores));
  out->set("tokenizer.ggml.token_type", std::move(tokens.types));
  out->set("tokenizer.ggml.add_space_prefix", proto.add_dummy_prefix);
}

bool has_part(const Json& tokenizer, const char* part, const char* type) {
  const Json* json = tokenizer.find(part);
  return json != nullptr &&
         json->dump().find("\"type\":\"" + std::string(type) + "\"") != std::string::npos;
}

void special_keys(const Tokenizer& tokenizer, std::optional<int64_t> pad, Keys* out) {
  const auto set = [out](const char* key, std::optional<int64_t> id) {
    if (id) out->set(key, *id);
  };
  const std::vector<int32_t>& stops = tokenizer.eos_ids();
  set("tokenizer.ggml.bos_token_id", tokenizer.bos_id());
  set("tokenizer.ggml.eos_token_id",
      stops.empty() ? std::nullopt : std::optional<int64_t>(stops[0]));
  if (stops.size() > 1) set("tokenizer.ggml.eot_token_id", stops[1]);
  if (stops.size() > 2) set("tokenizer.ggml.eom_token_id", stops[2]);
  set("tokenizer.ggml.unknown_token_id", tokenizer.unk_id());
  const auto own = tokenizer.pad_id();
  set("tokenizer.ggml.padding_token_id", own ? std::optional<int64_t>(*own) : pad);
  const auto holds = [](const std::vector<int32_t>& ids, std::optional<int32_t> id) {
    return id && std::find(ids.begin(), ids.end(), *id) != ids.end();
  };
  out->set("tokenizer.ggml.add_bos_token", holds(tokenizer.prefix_ids(), tokenizer.bos_id()));
  out->set("tokenizer.ggml.add_eos_token", holds(tokenizer.suffix_ids(), tokenizer.eos_id()));
}

Tokenizer load_supported(const std::string& folder) {
  try {
    return Tokenizer::load(folder);
  } catch (const Error& error) {
    if (error.message().find("not supported") == std::string::npos) throw;
    throw Unsaid{error.message()};
  }
}

void json_keys(const fs::path& file, int64_t rows, Keys* out) {
  const Json document = support::read_json(file.string());
  const std::string model = type_of(document.at("model", "tokenizer.json"));
  if (model != "BPE") throw Unsaid{"its model " + model + " has no name in GGUF files"};
  Tokens tokens = all_tokens(document, rows, file.string());
  if (has_part(document, "pre_tokenizer", "ByteLevel")) {
    byte_level_keys(document, std::move(tokens), out);
  } else if (document.at("model").get_bool("byte_fallback", false)) {
    spm_keys(document, std::move(tokens), out);
  } else {
    throw Unsaid{"its kind of BPE has no name in GGUF files"};
  }
}

}  // namespace

GgufTokenizerKeys gguf_tokenizer_keys(const std::string& folder, int64_t rows,
                                      std::optional<int64_t> pad) {
  GgufTokenizerKeys result;
  Keys keys;
  try {
    const fs::path json = fs::path(folder) / "tokenizer.json";
    if (path_exists(json)) {
      json_keys(json, rows, &keys);
    } else {
      spm_model_keys(fs::path(folder) / "tokenizer.model", rows, &keys);
    }
    special_keys(load_supported(folder), pad, &keys);
  } catch (const Unsaid& unsaid) {
    result.unsaid = unsaid.why;
    return result;
  }
  try {
    if (const auto chat = ChatTemplate::load(folder))
      keys.set("tokenizer.chat_template", chat->source());
  } catch (const Error& error) {
    result.warning = std::string(error.what()) + ": the GGUF file has no chat template";
  }
  result.keys = std::move(keys.keys);
  return result;
}

}  // namespace loongforge::data
