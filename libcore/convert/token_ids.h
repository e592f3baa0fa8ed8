// The token_ids block of a LoongIR model: special ids doubled (LoongIR ids are even), the pad
// settled by its rule. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "formats/hf_config.h"
#include "support/json.h"

namespace loongforge::convert {

struct TokenIds {
  support::Json
      block;  // id_scale, vocab_size, bos, eos (list), pad; even ids; absent ones are left out
  std::optional<int64_t> pad;  // Hugging Face id
  std::vector<std::string> warnings;
};

// tokenizer: null when the model has none. generation: null when it has none. flag: --pad_token_id.
TokenIds resolve_token_ids(const formats::HfConfig& config,
                           const formats::GenerationConfig* generation,
                           const data::Tokenizer* tokenizer, std::optional<int64_t> flag);

// generation_config.json for a source that has none (GGUF): what the block says, in Hugging Face
// ids.
support::Json generation_config_of(const support::Json& block);

}  // namespace loongforge::convert
