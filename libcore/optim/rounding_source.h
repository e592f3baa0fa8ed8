// Where stochastic rounding takes its draws from.
// Thread-safety: fill() is called from several threads at once, each with its own worker number.
#pragma once

#include <cstdint>
#include <span>

namespace loongforge::optim {

class RoundingSource {
 public:
  virtual ~RoundingSource() = default;
  // Draws element, element + 1, ... of (stream, step): 16 bits each, the same whoever asks.
  virtual void fill(uint32_t stream, uint64_t step, int64_t element, std::span<uint16_t> draws,
                    int worker) = 0;
};

}  // namespace loongforge::optim
