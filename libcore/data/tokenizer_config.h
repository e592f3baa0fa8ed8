// tokenizer_config.json with its older companions (special_tokens_map.json) as plain values.
// Thread-safety: values.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/tokenizer_parts.h"
#include "support/json.h"

namespace loongforge::data {

struct TokenizerConfig {
  // bos_token, eos_token, unk_token, sep_token, pad_token, cls_token, mask_token: those the files
  // name; and additional_special_tokens as a list. This is what chat templates see.
  support::Json special_tokens = support::Json::object();
  // Every token named as special, with flags where the file gives them. Ids are -1 where it gives
  // none.
  std::vector<AddedToken> named;
  std::vector<AddedToken> added_tokens;  // added_tokens_decoder
  std::optional<bool> add_bos_token, add_eos_token;
  bool split_special_tokens = false;
  std::optional<bool> legacy;  // of LlamaTokenizer: where a SentencePiece model's dummy prefix goes
  // Chat templates by name; the only or unnamed one is "default".
  std::vector<std::pair<std::string, std::string>> chat_templates;

  std::string token(const char* key) const { return special_tokens.get_string(key, ""); }
};

// config: tokenizer_config.json or null; map: special_tokens_map.json or null. where: the file, for
// errors.
TokenizerConfig parse_tokenizer_config(const support::Json& config, const support::Json& map,
                                       const std::string& where);
// An entry of "added_tokens" or "added_tokens_decoder"; id -1 unless the entry has one.
AddedToken parse_added_token(const support::Json& json, const std::string& what);
// Null when the file does not exist.
support::Json read_json_if_present(const std::string& path);

}  // namespace loongforge::data
