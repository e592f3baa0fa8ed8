// Dropout masks over SM4-CTR: eight bits a draw, addressed by (seed, use, step, micro-batch), the
// same for any split. Thread-safety: one thread (the cipher handle is shared).
#pragma once

#include <cstdint>

#include "graph/op.h"
#include "support/sm4.h"

namespace loongforge::train {

class DropoutMasks final : public graph::MaskSource {
 public:
  // micro_batch: its number over the whole run.
  DropoutMasks(support::Sm4Random& random, uint64_t micro_batch)
      : random_(random), micro_batch_(micro_batch) {}
  void fill(uint32_t stream, int64_t rows, int64_t row_bytes, double drop,
            uint8_t* bits) const override;

 private:
  support::Sm4Random& random_;
  uint64_t micro_batch_;
};

}  // namespace loongforge::train
