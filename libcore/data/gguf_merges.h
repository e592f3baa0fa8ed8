// Merges for a SentencePiece vocabulary that comes with scores only (GGUF's model "llama"): every
// way to put a token together from two others, the better score first. Thread-safety: pure
// functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/json.h"

namespace loongforge::data {

// takes_part[id]: false for control, unknown, byte and unused tokens, which no merge makes or uses.
// tokens, scores and takes_part are of one length. The result is tokenizer.json's "merges", pairs.
support::Json merges_from_scores(const std::vector<std::string>& tokens,
                                 const std::vector<double>& scores,
                                 const std::vector<bool>& takes_part, const std::string& where);

}  // namespace loongforge::data
