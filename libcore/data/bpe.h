// BPE behind a ByteLevel pre-tokenizer: a piece's bytes are merged pair by pair, the lowest-ranked
// pair first and the leftmost of equals, until no pair of the table is left. Pieces met before come
// from a small per-thread table. Thread-safety: see TokenModel.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizer_parts.h"

namespace loongforge::data {

std::unique_ptr<TokenModel> make_byte_bpe(const support::Json& json, const std::string& where);

}  // namespace loongforge::data
