// Draws of stochastic rounding over SM4-CTR: 16 bits each, addressed by (seed, parameter and use,
// step, element). Thread-safety: as optim::RoundingSource: each worker has a generator of its own.
#pragma once

#include <memory>
#include <vector>

#include "optim/rounding_source.h"
#include "support/sm4.h"

namespace loongforge::train {

class Sm4Rounding final : public optim::RoundingSource {
 public:
  Sm4Rounding(uint64_t seed, int workers);
  void fill(uint32_t stream, uint64_t step, int64_t element, std::span<uint16_t> draws,
            int worker) override;

 private:
  std::vector<std::unique_ptr<support::Sm4Random>> random_;
};

}  // namespace loongforge::train
