// One micro-batch as the executor reads it: rows of tokens without padding, several documents side
// by side. Thread-safety: a value.
#pragma once

#include <cstdint>
#include <vector>

namespace loongforge::graph {

struct Document {
  int64_t row = 0;     // first token row
  int64_t length = 0;  // tokens
};

struct Batch {
  std::vector<int32_t> ids;  // LoongIR ids (even), one per row
  std::vector<int32_t>
      targets;  // LoongIR id that the row is trained to predict, -1: not trained on
  std::vector<int32_t> positions;   // position inside the document, from 0
  std::vector<Document> documents;  // in row order, covering all rows
  int64_t valid = 0;                // rows with a target

  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
};

}  // namespace loongforge::graph
