// tokenizer.json: its parts put together. Thread-safety: pure functions.
#pragma once

#include <memory>
#include <string>

#include "data/added_tokens.h"
#include "data/tokenizer_config.h"
#include "data/tokenizer_parts.h"
#include "support/json.h"

namespace loongforge::data {

struct TokenizerParts {
  AddedTokens added;
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null
  bool track_origins = false;  // the pre-tokenizer must see through what the normalizer changed
  std::unique_ptr<TokenModel> model;
  std::unique_ptr<Decoder> decoder;
  PostProcessor post;
};

// Throws Error(kBadData) whose where is the file and whose message names the part.
TokenizerParts build_tokenizer(const support::Json& tokenizer, const TokenizerConfig& config,
                               const std::string& where);

// What comes from outside the model: tokenizer.json's added tokens (tokenizer may be null), those
// of the configuration, and whether BOS and EOS are added. Call once, after the other parts are
// there.
void add_tokens_and_flags(const support::Json& tokenizer, const TokenizerConfig& config,
                          TokenizerParts& parts, const std::string& where);

// The single-text half of a post-processor (null: none).
PostProcessor make_post_processor(const support::Json* json, const std::string& where);

}  // namespace loongforge::data
