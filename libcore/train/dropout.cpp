#include "train/dropout.h"

#include <cmath>
#include <vector>

namespace loongforge::train {

void DropoutMasks::fill(uint32_t stream, int64_t rows, int64_t row_bytes, double drop,
                        uint8_t* bits) const {
  // A draw of eight bits keeps its element when it is at least drop * 256 (so probabilities come in
  // steps of 1/256).
  const int threshold = static_cast<int>(std::lround(drop * 256.0));
  std::vector<uint8_t> draws(static_cast<size_t>(row_bytes * 8));
  for (int64_t r = 0; r < rows; ++r) {
    random_.bytes(support::kStreamDropout + 16 * stream, micro_batch_,
                  static_cast<uint64_t>(r * row_bytes * 8), draws);
    for (int64_t b = 0; b < row_bytes; ++b) {
      unsigned byte = 0;
      for (unsigned k = 0; k < 8; ++k)
        byte |= static_cast<unsigned>(draws[static_cast<size_t>(b * 8) + k] >= threshold) << k;
      bits[r * row_bytes + b] = static_cast<uint8_t>(byte);
    }
  }
}

}  // namespace loongforge::train
