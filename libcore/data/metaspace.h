// Metaspace of tokenizer.json, as SentencePiece has it: spaces become a visible character (U+2581),
// words are led by one. Thread-safety: pure functions.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizer_parts.h"

namespace loongforge::data {

struct MetaspacePreTokenizer {
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  // prepend_scheme "first": it must know where a piece began in the user's text.
  bool needs_origins = false;
};

MetaspacePreTokenizer make_metaspace(const support::Json& json, const std::string& where);
std::unique_ptr<Decoder> make_metaspace_decoder(const support::Json& json,
                                                const std::string& where);

}  // namespace loongforge::data
