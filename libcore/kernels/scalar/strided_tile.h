// The strided tile of the scalar ISA: see generic/strided.h. 4 rows x 16 columns, fp32 operands.
#pragma once

#include <math.h>

#include "kernels/generic/strided.h"

namespace loongforge::kernels::scalar {
namespace {

template <class Operand, bool kRounds>
struct StridedTile {
  static constexpr int kMr = 4;
  static constexpr int kNr = 16;

  static void mul(int mr, int /*nr: 16*/, int64_t pairs, const StridedA& a, const float* b,
                  float* c, int64_t ldc, bool accumulate) {
    const auto* data = static_cast<const float*>(a.data);
    for (int i = 0; i < mr; ++i) {
      float sum[kNr];
      for (int j = 0; j < kNr; ++j) sum[j] = accumulate ? c[i * ldc + j] : 0.0f;
      for (int64_t p = 0; p < pairs; ++p) {
        const float* at = data + i * a.row + p * a.step;
        const float odd = at[a.odd], even = at[a.even];
        const float* row = b + p * 2 * kNr;
        for (int j = 0; j < kNr; ++j) {
          // Products of bf16 images are exact in fp32, so that multiply and add round as fma does.
          sum[j] = kRounds ? (sum[j] + odd * row[j]) + even * row[kNr + j]
                           : fmaf(even, row[kNr + j], fmaf(odd, row[j], sum[j]));
        }
      }
      for (int j = 0; j < kNr; ++j) c[i * ldc + j] = sum[j];
    }
  }
};

}  // namespace
}  // namespace loongforge::kernels::scalar
