// Cosines and sines of rotary embeddings, as transformers makes them: inv_freq and the angle are rounded to fp32, cosine and
// sine are then taken of that angle (kernels/math.h, the same bits everywhere).
// Thread-safety: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "base/api.h"
#include "support/json.h"

namespace loongforge::graph {

struct RopeTable {
  int64_t head_dim = 0, positions = 0;
  std::vector<float> cos, sin;  // [positions][head_dim / 2]
};

// theta: base; scaling: {"rope_type": "default" | "llama3", ...} or null. Throws Error(kBadData) naming `where` for an unknown
// type or a missing key. Source: transformers' modeling_rope_utils; Llama 3.1's rule for wavelengths.
LF_API std::vector<float> rope_inv_freq(int64_t head_dim, double theta, const support::Json& scaling,
                                        const std::string& where);
LF_API RopeTable make_rope_table(int64_t head_dim, int64_t positions, const std::vector<float>& inv_freq);

}  // namespace loongforge::graph
