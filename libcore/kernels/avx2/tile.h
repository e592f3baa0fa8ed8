// The register tiles of the AVX2 ISA (FMA, F16C): see generic/tile.md. 6 rows x 16 columns, fp32
// operands: 12 accumulators, 2 registers of B, broadcasts of A.
#pragma once

#include <immintrin.h>
#include <stddef.h>

#include "kernels/avx2/pack.h"

namespace loongforge::kernels::avx2 {
namespace {

// sum + x * y, as asm so that each sum stays in its register: g++ 12 rotates them through the
// factors' registers otherwise.
LF_INLINE __m256 mul_add(__m256 x, __m256 y, __m256 sum) {
  __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"(y));
  return sum;
}

// Named accumulators and one instance per row count and start: g++ 12 keeps arrays of them, or a
// start chosen at run time, on the stack.
#define LF_TILE_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define LF_TILE_START(i)                        \
  __m256 c##i##0 = _mm256_setzero_ps();         \
  __m256 c##i##1 = _mm256_setzero_ps();         \
  if constexpr (kFromC && i < kRows) {          \
    c##i##0 = _mm256_loadu_ps(c + i * ldc);     \
    c##i##1 = _mm256_loadu_ps(c + i * ldc + 8); \
  }
#define LF_TILE_STEP(i)                          \
  if constexpr (i < kRows) {                     \
    const __m256 x = _mm256_broadcast_ss(a + i); \
    c##i##0 = mul_add(x, b0, c##i##0);           \
    c##i##1 = mul_add(x, b1, c##i##1);           \
  }
#define LF_TILE_STORE(i)                        \
  if constexpr (i < kRows) {                    \
    _mm256_storeu_ps(c + i * ldc, c##i##0);     \
    _mm256_storeu_ps(c + i * ldc + 8, c##i##1); \
  }

// REQUIRES k2 > 0: pairs of k.
template <int kRows, bool kFromC>
[[gnu::noinline]] void mul_tile(int64_t k2, const float* a, const float* b, float* c, int64_t ldc) {
  LF_TILE_ROWS(LF_TILE_START)
  do {
    __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
    LF_TILE_ROWS(LF_TILE_STEP)
    a += 6;
    b0 = _mm256_loadu_ps(b + 16), b1 = _mm256_loadu_ps(b + 24);
    LF_TILE_ROWS(LF_TILE_STEP)
    a += 6;
    b += 32;
  } while (--k2 > 0);
  LF_TILE_ROWS(LF_TILE_STORE)
}
#undef LF_TILE_START
#undef LF_TILE_STEP
#undef LF_TILE_STORE
#undef LF_TILE_ROWS

// kRound: operands are bf16 images (Precision::kBf16), whose products are exact, so that fma serves
// both.
template <bool kRound>
struct Tile {
  using Operand = float;
  static constexpr bool kRounds = kRound;
  static constexpr int kMr = 6;
  static constexpr int kNr = 16;
  static size_t a_panel_elems(int64_t k) { return static_cast<size_t>(panel_elems<kMr>(k)); }
  static size_t b_panel_elems(int64_t k) { return static_cast<size_t>(panel_elems<kNr>(k)); }

  static void mul(int mr, int nr, int64_t k, const float* a, const float* b, float* c, int64_t ldc,
                  bool accumulate) {
    if (nr == kNr && k > 0) return mul_full(mr, (k + 1) / 2, a, b, c, ldc, accumulate);
    alignas(32) float tile[kMr * kNr] = {};
    if (accumulate) load_tile<kNr>(mr, nr, c, ldc, tile);
    if (k > 0) mul_full(mr, (k + 1) / 2, a, b, tile, kNr, true);
    store_tile<kNr>(mr, nr, tile, c, ldc);
  }

  template <class T>
  static void pack_a(const T* src, int64_t ld, int rows_valid, int64_t k, float* dst) {
    pack_a_rows<kRound>(src, ld, rows_valid, k, dst);
  }
  template <class T>
  static void pack_a_t(const T* src, int64_t ld, int rows_valid, int64_t k, float* dst) {
    pack_a_columns<kRound>(src, ld, rows_valid, k, dst);
  }
  template <class T>
  static void pack_b(const T* src, int64_t ld, int cols_valid, int64_t k, float* dst) {
    pack_b_rows<kRound>(src, ld, cols_valid, k, dst);
  }
  template <class T>
  static void pack_b_t(const T* src, int64_t ld, int cols_valid, int64_t k, float* dst) {
    pack_b_columns<kRound>(src, ld, cols_valid, k, dst);
  }

 private:
  static void mul_full(int mr, int64_t k2, const float* a, const float* b, float* c, int64_t ldc,
                       bool from_c) {
    using Fn = void (*)(int64_t, const float*, const float*, float*, int64_t);
    static constexpr Fn kFns[2][kMr] = {
        {mul_tile<1, false>, mul_tile<2, false>, mul_tile<3, false>, mul_tile<4, false>,
         mul_tile<5, false>, mul_tile<6, false>},
        {mul_tile<1, true>, mul_tile<2, true>, mul_tile<3, true>, mul_tile<4, true>,
         mul_tile<5, true>, mul_tile<6, true>}};
    kFns[from_c][mr - 1](k2, a, b, c, ldc);
  }
};

using TileBf16 = Tile<true>;
using TileF32 = Tile<false>;

}  // namespace
}  // namespace loongforge::kernels::avx2
