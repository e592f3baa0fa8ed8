// The strided tiles of the AVX-512 ISA: see generic/strided.h. 6 rows x 16, 32, 48 or 64 columns.
#pragma once

#include <type_traits>

#include "kernels/avx512/tile.h"
#include "kernels/generic/strided.h"

namespace loongforge::kernels::avx512 {
namespace {

// As in tile.h: named accumulators, one instance per shape and start.
#define LF_STRIDED_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define LF_STRIDED_COLS(X, i) X(i, 0) X(i, 1) X(i, 2) X(i, 3)
#define LF_STRIDED_START_ONE(i, v)      \
  __m512 c##i##v = _mm512_setzero_ps(); \
  if constexpr (kFromC && i < kRows && v < kVecs) c##i##v = _mm512_loadu_ps(c + i * ldc + 16 * v);
#define LF_STRIDED_START(i) LF_STRIDED_COLS(LF_STRIDED_START_ONE, i)
#define LF_STRIDED_STEP_ONE(i, v) \
  if constexpr (v < kVecs) c##i##v = Op::mul_add(x, b##v, c##i##v);
#define LF_STRIDED_STEP(i)                                            \
  if constexpr (i < kRows) {                                          \
    const auto x = Op::broadcast((i < 3 ? low : high) + i % 3 * row); \
    LF_STRIDED_COLS(LF_STRIDED_STEP_ONE, i)                           \
  }
#define LF_STRIDED_STORE_ONE(i, v) \
  if constexpr (i < kRows && v < kVecs) _mm512_storeu_ps(c + i * ldc + 16 * v, c##i##v);
#define LF_STRIDED_STORE(i) LF_STRIDED_COLS(LF_STRIDED_STORE_ONE, i)
#define LF_STRIDED_K(at)                                \
  {                                                     \
    const auto* low = a_low + at;                       \
    const auto* high = a_high + at;                     \
    const auto b0 = Op::load(b);                        \
    const auto b1 = Op::load(b + (kVecs > 1 ? 16 : 0)); \
    const auto b2 = Op::load(b + (kVecs > 2 ? 32 : 0)); \
    const auto b3 = Op::load(b + (kVecs > 3 ? 48 : 0)); \
    LF_STRIDED_ROWS(LF_STRIDED_STEP)                    \
    b += 64;                                            \
  }
#define LF_STRIDED_PAIR                      \
  if constexpr (std::is_same_v<Op, FmaOp>) { \
    LF_STRIDED_K(odd)                        \
    LF_STRIDED_K(even)                       \
  } else {                                   \
    LF_STRIDED_K(0)                          \
  }                                          \
  a_low += step;                             \
  a_high += step;

// REQUIRES pairs > 0.
template <class Op, int kRows, int kVecs, bool kFromC>
[[gnu::noinline]] void strided_tile(int64_t pairs, const StridedA& a, const void* b_panel, float* c,
                                    int64_t ldc) {
  const auto* a_low = static_cast<const typename Op::Element*>(a.data);
  const auto* a_high = a_low + 3 * a.row;
  const auto* b = static_cast<const typename Op::Element*>(b_panel);
  const int64_t row = a.row, step = a.step;
  [[maybe_unused]] const int64_t odd = a.odd, even = a.even;
  LF_STRIDED_ROWS(LF_STRIDED_START)
  for (; pairs >= 2; pairs -= 2) {
    LF_STRIDED_PAIR
    LF_STRIDED_PAIR
  }
  if (pairs != 0) {
    LF_STRIDED_PAIR
  }
  // Keeps g++ from working out the addresses of all stores before the loop and spilling them.
  __asm__("" : "+r"(c), "+r"(ldc));
  LF_STRIDED_ROWS(LF_STRIDED_STORE)
}
#undef LF_STRIDED_PAIR
#undef LF_STRIDED_ROWS
#undef LF_STRIDED_COLS
#undef LF_STRIDED_START_ONE
#undef LF_STRIDED_START
#undef LF_STRIDED_STEP_ONE
#undef LF_STRIDED_STEP
#undef LF_STRIDED_STORE_ONE
#undef LF_STRIDED_STORE
#undef LF_STRIDED_K

template <class Operand, bool kRounds>
struct StridedTile {
  using Op = std::conditional_t<sizeof(Operand) == sizeof(float), FmaOp, DotOp>;
  static constexpr int kMr = 6;
  static constexpr int kNr = 64;

  static void mul(int mr, int nr, int64_t pairs, const StridedA& a, const Operand* b, float* c,
                  int64_t ldc, bool accumulate) {
    kFns[accumulate][nr / 16 - 1][mr - 1](pairs, a, b, c, ldc);
  }

 private:
  using Fn = void (*)(int64_t, const StridedA&, const void*, float*, int64_t);
#define LF_STRIDED_FNS(vecs, from_c)                                          \
  {                                                                           \
    strided_tile<Op, 1, vecs, from_c>, strided_tile<Op, 2, vecs, from_c>,     \
        strided_tile<Op, 3, vecs, from_c>, strided_tile<Op, 4, vecs, from_c>, \
        strided_tile<Op, 5, vecs, from_c>, strided_tile<Op, 6, vecs, from_c>  \
  }
  static constexpr Fn kFns[2][4][kMr] = {{LF_STRIDED_FNS(1, false), LF_STRIDED_FNS(2, false),
                                          LF_STRIDED_FNS(3, false), LF_STRIDED_FNS(4, false)},
                                         {LF_STRIDED_FNS(1, true), LF_STRIDED_FNS(2, true),
                                          LF_STRIDED_FNS(3, true), LF_STRIDED_FNS(4, true)}};
#undef LF_STRIDED_FNS
};

}  // namespace
}  // namespace loongforge::kernels::avx512
