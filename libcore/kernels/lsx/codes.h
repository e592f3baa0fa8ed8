// FP8 codes in an LSX register, as generic/tile.md asks for them: LASX reads and turns them the
// same way.
#pragma once

#include <lsxintrin.h>
#include <stdint.h>

#include "kernels/types.h"

namespace loongforge::kernels::lsx {
namespace {

struct CodeBlocks {
  using Codes = __m128i;  // 16 of them

  static LF_INLINE Codes load_codes(const uint8_t* p) { return __lsx_vld(p, 0); }
  static LF_INLINE void transpose_codes(const uint8_t* src, int64_t stride, Codes out[16]) {
    Codes x[16], y[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) x[i] = load_codes(src + (i ^ 1) * stride);
#pragma GCC unroll 4
    for (int step = 0; step < 4; ++step) {
      // Row i interleaved with row i + 8: after four steps, byte (k, n) has moved to (n, k).
#pragma GCC unroll 16
      for (int i = 0; i < 8; ++i) {
        y[2 * i] = __lsx_vilvl_b(x[i + 8], x[i]);
        y[2 * i + 1] = __lsx_vilvh_b(x[i + 8], x[i]);
      }
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) x[i] = y[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) out[i] = x[i];
  }
};

}  // namespace
}  // namespace loongforge::kernels::lsx
