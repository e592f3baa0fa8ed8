// The Unigram model: of all ways to cut a piece into tokens, the one whose scores add up highest.
// From tokenizer.json, or put together from a SentencePiece model. Thread-safety: see TokenModel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer_parts.h"

namespace loongforge::data {

struct UnigramTokens {
  std::vector<std::string> tokens;  // by id, each once
  std::vector<double> scores;
  std::vector<bool> sought;  // in the text; the others are ids only
  int32_t unk = -1;          // -1: a character without token is an error
  double unk_score = 0;      // of one unknown character
  bool byte_fallback = false;
  // SentencePiece: sums are rounded to single precision one by one, so equal cuttings are told
  // apart as it tells them apart.
  bool single_precision = false;
  // tokenizers: a run of unknown characters that spells a token is that token.
  bool unknown_may_spell = false;
};

// where: the file, for errors while encoding.
std::unique_ptr<TokenModel> make_unigram(UnigramTokens tokens, const std::string& where);
// tokenizer.json's "model".
std::unique_ptr<TokenModel> make_unigram(const support::Json& json, const std::string& where);

}  // namespace loongforge::data
