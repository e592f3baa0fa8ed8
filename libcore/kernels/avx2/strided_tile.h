// The strided tile of the AVX2 ISA: see generic/strided.h. 6 rows x 16 columns, fp32 operands.
#pragma once

#include "kernels/avx2/tile.h"
#include "kernels/generic/strided.h"

namespace loongforge::kernels::avx2 {
namespace {

// As in tile.h: named accumulators, one instance per row count and start.
#define LF_STRIDED_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define LF_STRIDED_START(i)                     \
  __m256 c##i##0 = _mm256_setzero_ps();         \
  __m256 c##i##1 = _mm256_setzero_ps();         \
  if constexpr (kFromC && i < kRows) {          \
    c##i##0 = _mm256_loadu_ps(c + i * ldc);     \
    c##i##1 = _mm256_loadu_ps(c + i * ldc + 8); \
  }
#define LF_STRIDED_STEP(i)                                                         \
  if constexpr (i < kRows) {                                                       \
    const __m256 x = _mm256_broadcast_ss((i < 3 ? low : high) + i % 3 * row + at); \
    c##i##0 = _mm256_fmadd_ps(x, b0, c##i##0);                                     \
    c##i##1 = _mm256_fmadd_ps(x, b1, c##i##1);                                     \
  }
#define LF_STRIDED_STORE(i)                     \
  if constexpr (i < kRows) {                    \
    _mm256_storeu_ps(c + i * ldc, c##i##0);     \
    _mm256_storeu_ps(c + i * ldc + 8, c##i##1); \
  }

// REQUIRES pairs > 0.
template <int kRows, bool kFromC>
[[gnu::noinline]] void strided_tile(int64_t pairs, const StridedA& a, const float* b, float* c,
                                    int64_t ldc) {
  const float* low = static_cast<const float*>(a.data);
  const float* high = low + 3 * a.row;
  const int64_t row = a.row, step = a.step, odd = a.odd, even = a.even;
  LF_STRIDED_ROWS(LF_STRIDED_START)
  do {
    {
      const int64_t at = odd;
      const __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
      LF_STRIDED_ROWS(LF_STRIDED_STEP)
    }
    {
      const int64_t at = even;
      const __m256 b0 = _mm256_loadu_ps(b + 16), b1 = _mm256_loadu_ps(b + 24);
      LF_STRIDED_ROWS(LF_STRIDED_STEP)
    }
    low += step;
    high += step;
    b += 32;
  } while (--pairs > 0);
  // Keeps g++ from working out the addresses of all stores before the loop and spilling them.
  __asm__("" : "+r"(c), "+r"(ldc));
  LF_STRIDED_ROWS(LF_STRIDED_STORE)
}
#undef LF_STRIDED_ROWS
#undef LF_STRIDED_START
#undef LF_STRIDED_STEP
#undef LF_STRIDED_STORE

template <class Operand, bool kRounds>
struct StridedTile {
  static constexpr int kMr = 6;
  static constexpr int kNr = 16;

  static void mul(int mr, int /*nr: 16*/, int64_t pairs, const StridedA& a, const Operand* b,
                  float* c, int64_t ldc, bool accumulate) {
    kFns[accumulate][mr - 1](pairs, a, b, c, ldc);
  }

 private:
  using Fn = void (*)(int64_t, const StridedA&, const float*, float*, int64_t);
  static constexpr Fn kFns[2][kMr] = {
      {strided_tile<1, false>, strided_tile<2, false>, strided_tile<3, false>,
       strided_tile<4, false>, strided_tile<5, false>, strided_tile<6, false>},
      {strided_tile<1, true>, strided_tile<2, true>, strided_tile<3, true>, strided_tile<4, true>,
       strided_tile<5, true>, strided_tile<6, true>}};
};

}  // namespace
}  // namespace loongforge::kernels::avx2
