// Which token comes next: the largest logit, or one drawn by temperature, top-k and top-p, in this
// order and with the rules of transformers' logits warpers.
//
// Drawing is a function of seed, prompt number, position and logits alone. It computes in double
// with our own exp and in one order of tokens, so the same logits give the same token on every
// machine. The random number is SM4's of stream kStreamSampling, step = position, number = prompt.
// Thread-safety: an object belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/api.h"
#include "support/sm4.h"

namespace loongforge::generate {

struct SamplingOptions {
  double temperature = 0;  // 0: greedy, the rest does not count
  int64_t top_k = 0;       // > 0: only the k largest, and what equals the smallest of them
  double top_p = 1;        // < 1: only the largest that together have at least this probability
  uint64_t seed = 42;
};

class LF_API Sampler {
 public:
  // Throws Error(kUsage): temperature < 0, top_k < 0, top_p outside (0, 1].
  explicit Sampler(const SamplingOptions& options);

  // logits: of the tokens that may be chosen (padded rows of the head are the caller's to leave
  // out), not empty. Throws Error(kFailed) when drawing finds NaN or infinity in them.
  int32_t choose(std::span<const float> logits, uint64_t prompt, int64_t position);
  // What choose() draws from: the probability of each token, 0 for those left out. REQUIRES
  // temperature > 0.
  std::vector<double> probabilities(std::span<const float> logits) const;

 private:
  SamplingOptions options_;
  support::Sm4Random random_;
};

}  // namespace loongforge::generate
