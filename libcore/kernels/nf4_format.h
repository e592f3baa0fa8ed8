// NF4, the 4-bit format of QLoRA: sixteen values (quantiles of a normal distribution, scaled to
// [-1, 1]) and one FP32 absmax for each block of 64 values along a row; a row's last block may be
// shorter. What every ISA must equal.
//
// value = table[code] * absmax, one fp32 product. Where a bf16 operand is wanted it is rounded once
// more, by round_operand. Encoding, as bitsandbytes does: x * (1 / absmax) in fp32, then the
// nearest table value, the lower one in a tie; a block whose absmax is under the smallest normal
// number is all zeros. Bytes hold two codes, the first in the high nibble. Source: bitsandbytes
// functional.py; notes 1.8. Freestanding and constexpr.
#pragma once

#include <stdint.h>

#include "kernels/types.h"

namespace loongforge::kernels {

inline constexpr int kNf4Block = 64;
inline constexpr uint8_t kNf4Zero = 7;  // the code of 0

alignas(64) inline constexpr float kNf4Values[16] = {-1.0f,
                                                     -0.6961928009986877f,
                                                     -0.5250730514526367f,
                                                     -0.39491748809814453f,
                                                     -0.28444138169288635f,
                                                     -0.18477343022823334f,
                                                     -0.09105003625154495f,
                                                     0.0f,
                                                     0.07958029955625534f,
                                                     0.16093020141124725f,
                                                     0.24611230194568634f,
                                                     0.33791524171829224f,
                                                     0.44070982933044434f,
                                                     0.5626170039176941f,
                                                     0.7229568362236023f,
                                                     1.0f};

// The middle between values i and i + 1, in fp32.
LF_INLINE constexpr float nf4_middle(int i) {
  return static_cast<float>((static_cast<double>(kNf4Values[i]) + kNf4Values[i + 1]) / 2);
}

LF_INLINE constexpr int64_t nf4_blocks(int64_t cols) { return (cols + kNf4Block - 1) / kNf4Block; }
LF_INLINE constexpr int64_t nf4_row_bytes(int64_t cols) { return (cols + 1) / 2; }

LF_INLINE constexpr uint8_t nf4_code_at(const uint8_t* codes, int64_t col) {
  return static_cast<uint8_t>(col % 2 == 0 ? codes[col / 2] >> 4 : codes[col / 2] & 0x0F);
}

}  // namespace loongforge::kernels
