#include "data/tokenizer_config.h"

#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "base/paths.h"
#include "data/vocabulary.h"

namespace loongforge::data {
namespace {

using support::Json;

constexpr const char* kNamedTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};

// A token is a string or an object with its content and flags. Empty content: none.
AddedToken named_token(const Json& json, const std::string& what) {
  if (json.is_object()) {
    AddedToken token = parse_added_token(json, what);
    token.special = true;
    return token;
  }
  AddedToken token;
  token.content = json.as_string(what);
  token.special = true;
  return token;
}

void read_names(const Json& source, TokenizerConfig& out) {
  for (const char* key : kNamedTokens) {
    const Json* value = source.find(key);
    if (value == nullptr || value->is_null() || out.special_tokens.contains(key)) continue;
    AddedToken token = named_token(*value, key);
    if (token.content.empty()) continue;
    out.special_tokens.set(key, token.content);
    out.named.push_back(std::move(token));
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const Json* list = source.find(key);
    if (list == nullptr || !list->is_array() || list->as_array().empty()) continue;
    Json names = Json::array();
    for (const Json& item : list->as_array()) {
      AddedToken token = named_token(item, key);
      names.push_back(token.content);
      out.named.push_back(std::move(token));
    }
    if (!out.special_tokens.contains("additional_special_tokens"))
      out.special_tokens.set("additional_special_tokens", std::move(names));
  }
}

void read_templates(const Json& value, TokenizerConfig& out) {
  if (value.is_string()) {
    out.chat_templates.emplace_back("default", value.as_string());
    return;
  }
  for (const Json& entry : value.as_array("chat_template"))
    out.chat_templates.emplace_back(
        entry.at("name", "chat_template's entry").as_string("chat_template's name"),
        entry.at("template", "chat_template's entry").as_string("chat_template's template"));
}

std::optional<bool> get_flag(const Json& config, const char* key) {
  const Json* value = config.find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  return value->as_bool(key);
}

void read_added(const Json& list, TokenizerConfig& out) {
  for (const auto& [key, value] : list.as_object("added_tokens_decoder")) {
    int32_t id = -1;
    auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || id > Vocabulary::kMaxId)
      throw_bad_data({}, "added_tokens_decoder: '" + key + "' is no token id");
    AddedToken token = parse_added_token(value, "added_tokens_decoder['" + key + "']");
    token.id = id;
    out.added_tokens.push_back(std::move(token));
  }
}

}  // namespace

AddedToken parse_added_token(const Json& json, const std::string& what) {
  AddedToken token;
  token.content = json.at("content", what).as_string(what + "'s content");
  token.single_word = json.get_bool("single_word", false);
  token.lstrip = json.get_bool("lstrip", false);
  token.rstrip = json.get_bool("rstrip", false);
  token.special = json.get_bool("special", false);
  token.normalized = json.get_bool("normalized", !token.special);
  if (const Json* id = json.find("id")) {
    int64_t value = id->as_int(what + "'s id");
    if (value < 0 || value > Vocabulary::kMaxId)
      throw_bad_data({}, what + ": id " + std::to_string(value) + " is out of range");
    token.id = static_cast<int32_t>(value);
  }
  return token;
}

TokenizerConfig parse_tokenizer_config(const Json& config, const Json& map,
                                       const std::string& where) {
  TokenizerConfig out;
  try {
    if (!config.is_null()) {
      config.as_object("tokenizer_config.json");
      read_names(config, out);
      out.add_bos_token = get_flag(config, "add_bos_token");
      out.add_eos_token = get_flag(config, "add_eos_token");
      out.legacy = get_flag(config, "legacy");
      out.split_special_tokens = config.get_bool("split_special_tokens", false);
      if (const Json* value = config.find("chat_template"); value != nullptr && !value->is_null())
        read_templates(*value, out);
      if (const Json* list = config.find("added_tokens_decoder");
          list != nullptr && !list->is_null())
        read_added(*list, out);
    }
    if (!map.is_null()) read_names(map, out);
  } catch (const Error& e) {
    if (!e.where().empty()) throw;
    throw Error(e.code(), where, e.message(), e.hint());
  }
  return out;
}

Json read_json_if_present(const std::string& path) {
  return path_exists(path) ? support::read_json(path) : Json();
}

}  // namespace loongforge::data
