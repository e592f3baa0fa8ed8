// Packing of operand panels, element by element: the definition of the panel order, and what tiles
// fall back on for edges.
//
// A panel holds W rows (of A) or columns (of B) and k padded to even with zeros. Element (i, kk), i
// < W, stands at
//   fp32 operands: (kk ^ 1) * W + i             (odd first within a pair: the order of
//   accumulation) Bf16 operands: (kk / 2) * 2W + 2i + kk % 2  (pairs, as vdpbf16ps reads them)
// Everything here is in an unnamed namespace: a copy per translation unit, because each is compiled
// for another ISA.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/types.h"

namespace loongforge::kernels {
namespace {

[[maybe_unused]] inline uint16_t operand_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return round_operand(u);
}
[[maybe_unused]] inline uint16_t operand_bits(Bf16 x) {
  return (x.bits & 0x7FFFu) < ((127 - 55) << 7) ? uint16_t{0} : x.bits;
}
[[maybe_unused]] inline float bf16_value(uint16_t bits) {
  const uint32_t u = static_cast<uint32_t>(bits) << 16;
  float x;
  memcpy(&x, &u, 4);
  return x;
}

// kRound: the operand is a bf16 image (Precision::kBf16); otherwise the value as it is.
template <bool kRound, class T>
inline void set_operand(Bf16* out, T x) {
  static_assert(kRound);
  out->bits = operand_bits(x);
}
template <bool kRound>
inline void set_operand(float* out, float x) {
  *out = kRound ? bf16_value(operand_bits(x)) : x;
}
template <bool kRound>
inline void set_operand(float* out, Bf16 x) {
  *out = bf16_value(kRound ? operand_bits(x) : x.bits);
}

template <int W>
inline int64_t panel_index(const float*, int64_t i, int64_t kk) {
  return (kk ^ 1) * W + i;
}
template <int W>
inline int64_t panel_index(const Bf16*, int64_t i, int64_t kk) {
  return (kk / 2) * 2 * W + 2 * i + kk % 2;
}

template <int W>
inline int64_t panel_elems(int64_t k) {
  return (k + 1) / 2 * 2 * W;
}

// dst(i, kk) = src[i * stride_i + kk * stride_k] for i < valid, kk < k; 0 elsewhere.
template <bool kRound, int W, class T, class Operand>
inline void pack_panel(const T* src, int64_t stride_i, int64_t stride_k, int valid, int64_t k,
                       Operand* dst) {
  for (int64_t kk = 0; kk < (k + 1) / 2 * 2; ++kk) {
    const int n = kk < k ? valid : 0;
    for (int i = 0; i < n; ++i)
      set_operand<kRound>(dst + panel_index<W>(dst, i, kk), src[i * stride_i + kk * stride_k]);
    for (int i = n; i < W; ++i) memset(dst + panel_index<W>(dst, i, kk), 0, sizeof(Operand));
  }
}

// c[i * ldc + j] from / to a dense tile of kNr columns; for the edges of C.
template <int kNr>
inline void load_tile(int mr, int nr, const float* c, int64_t ldc, float* tile) {
  for (int i = 0; i < mr; ++i)
    memcpy(tile + i * kNr, c + i * ldc, sizeof(float) * static_cast<size_t>(nr));
}
template <int kNr>
inline void store_tile(int mr, int nr, const float* tile, float* c, int64_t ldc) {
  for (int i = 0; i < mr; ++i)
    memcpy(c + i * ldc, tile + i * kNr, sizeof(float) * static_cast<size_t>(nr));
}

}  // namespace
}  // namespace loongforge::kernels
