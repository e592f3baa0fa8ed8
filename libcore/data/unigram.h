// The Unigram model of tokenizer.json: of all ways to cut a piece into tokens, the one whose scores
// add up highest. Thread-safety: see TokenModel.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizer_parts.h"

namespace loongforge::data {

std::unique_ptr<TokenModel> make_unigram(const support::Json& json, const std::string& where);

}  // namespace loongforge::data
