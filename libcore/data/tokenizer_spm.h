// A tokenizer that is a SentencePiece model alone (tokenizer.model without tokenizer.json), as
// Hugging Face's LlamaTokenizer runs it: the library splits what stands between added tokens.
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "data/tokenizer_config.h"
#include "data/tokenizer_json.h"

namespace loongforge::data {

// bytes: the file's content. config: as read; what it leaves open is filled in from the model: the
// special tokens' names, and that BOS is added and EOS not. known: there was a configuration;
// without one, special tokens in a text stay text, as the library by itself has it.
TokenizerParts build_spm_tokenizer(const std::string& bytes, TokenizerConfig& config, bool known,
                                   const std::string& where);

}  // namespace loongforge::data
