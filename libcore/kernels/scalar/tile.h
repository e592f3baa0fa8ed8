// The register tiles of the scalar ISA: see generic/tile.md. 4 rows x 16 columns, fp32 operands.
#pragma once

#include <math.h>
#include <stddef.h>

#include "kernels/generic/pack.h"

namespace loongforge::kernels::scalar {
namespace {

template <bool kRound>
struct Tile {
  using Operand = float;
  static constexpr bool kRounds = kRound;
  static constexpr int kMr = 4;
  static constexpr int kNr = 16;
  static size_t a_panel_elems(int64_t k) { return static_cast<size_t>(panel_elems<kMr>(k)); }
  static size_t b_panel_elems(int64_t k) { return static_cast<size_t>(panel_elems<kNr>(k)); }

  static void mul(int mr, int nr, int64_t k, const float* a, const float* b, float* c, int64_t ldc,
                  bool accumulate) {
    float sum[kMr][kNr] = {};
    if (accumulate) load_tile<kNr>(mr, nr, c, ldc, sum[0]);
    for (int64_t kk = 0; kk < (k + 1) / 2 * 2; ++kk, a += kMr, b += kNr) {
      for (int i = 0; i < mr; ++i) {
        for (int j = 0; j < kNr; ++j) {
          // Products of bf16 images are exact in fp32, so that multiply and add round as fma does.
          if constexpr (kRound) {
            sum[i][j] += a[i] * b[j];
          } else {
            sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
          }
        }
      }
    }
    store_tile<kNr>(mr, nr, sum[0], c, ldc);
  }

  template <class T>
  static void pack_a(const T* src, int64_t ld, int rows_valid, int64_t k, float* dst) {
    pack_panel<kRound, kMr>(src, ld, 1, rows_valid, k, dst);
  }
  template <class T>
  static void pack_a_t(const T* src, int64_t ld, int rows_valid, int64_t k, float* dst) {
    pack_panel<kRound, kMr>(src, 1, ld, rows_valid, k, dst);
  }
  template <class T>
  static void pack_b(const T* src, int64_t ld, int cols_valid, int64_t k, float* dst) {
    pack_panel<kRound, kNr>(src, 1, ld, cols_valid, k, dst);
  }
  template <class T>
  static void pack_b_t(const T* src, int64_t ld, int cols_valid, int64_t k, float* dst) {
    pack_panel<kRound, kNr>(src, ld, 1, cols_valid, k, dst);
  }
};

using TileBf16 = Tile<true>;
using TileF32 = Tile<false>;

}  // namespace
}  // namespace loongforge::kernels::scalar
