// BPE over characters, as SentencePiece models have it: a piece's characters are merged; one that
// the vocabulary lacks becomes the tokens of its bytes (byte_fallback) or the unknown token. A
// piece, which may be a whole text, is first cut where no merge could ever join the two sides.
// Thread-safety: see TokenModel.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizer_parts.h"

namespace loongforge::data {

std::unique_ptr<TokenModel> make_char_bpe(const support::Json& json, const std::string& where);

}  // namespace loongforge::data
