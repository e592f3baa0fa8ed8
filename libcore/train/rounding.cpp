#include "train/rounding.h"

#include <bit>

namespace loongforge::train {

static_assert(std::endian::native == std::endian::little, "draws take their bytes little-endian");

Sm4Rounding::Sm4Rounding(uint64_t seed, int workers) {
  for (int w = 0; w < workers; ++w) random_.push_back(std::make_unique<support::Sm4Random>(seed));
}

void Sm4Rounding::fill(uint32_t stream, uint64_t step, int64_t element, std::span<uint16_t> draws,
                       int worker) {
  random_[static_cast<size_t>(worker)]->bytes(
      support::kStreamRounding + 16 * stream, step, 2 * static_cast<uint64_t>(element),
      {reinterpret_cast<uint8_t*>(draws.data()), draws.size_bytes()});
}

}  // namespace loongforge::train
