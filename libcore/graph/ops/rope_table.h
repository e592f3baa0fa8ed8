// Cosines and sines of rotary embeddings, as transformers makes them: frequencies and angles are
// rounded to fp32, cosine and sine are then taken of that angle (kernels/math.h, the same bits
// everywhere) and multiplied by the attention factor. Thread-safety: values are immutable;
// RopeTables may be used from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/api.h"
#include "support/json.h"

namespace loongforge::graph {

struct RopeTable {
  int64_t head_dim = 0, positions = 0;
  std::vector<float> cos, sin;  // [positions][head_dim / 2]
};

struct RopeFrequencies {
  std::vector<float> inv_freq;    // head_dim / 2
  float attention_factor = 1.0f;  // of cosines and sines
};

// theta: base; scaling: {"rope_type": "default" | "linear" | "dynamic" | "yarn" | "llama3", ...} or
// null; longest: tokens of the longest document (only dynamic looks at it). Throws Error(kBadData)
// naming `where` for an unknown type, a missing key or a value that gives no frequency. Sources:
// transformers' modeling_rope_utils; YaRN, arXiv:2309.00071; Llama 3.1's rule.
LF_API RopeFrequencies rope_frequencies(int64_t head_dim, double theta,
                                        const support::Json& scaling, int64_t longest,
                                        const std::string& where);
LF_API RopeTable make_rope_table(int64_t head_dim, int64_t positions,
                                 const RopeFrequencies& frequencies);

// The frequencies of rope type dynamic depend on the longest document of the batch: packing changes
// bits.
LF_API bool rope_depends_on_length(const support::Json& scaling);

// The table of a graph's rope nodes. For dynamic a longer batch than the model was made for has a
// table of its own, of which the latest is kept.
class LF_API RopeTables {
 public:
  RopeTables(int64_t head_dim, int64_t positions, double theta, support::Json scaling,
             std::string where);

  // longest: tokens of the batch's longest document, those in the KV cache included. REQUIRES
  // longest <= positions.
  std::shared_ptr<const RopeTable> of(int64_t longest) const;

 private:
  int64_t head_dim_;
  double theta_;
  support::Json scaling_;
  std::string where_;
  int64_t limit_ = 0;  // dynamic: documents up to it have the plain table; 0: all have
  std::shared_ptr<const RopeTable> plain_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const RopeTable> long_;  // of long_->positions tokens
};

}  // namespace loongforge::graph
