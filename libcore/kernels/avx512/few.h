// Products of up to 4 rows with a packed weight whose values are decoded in registers and never
// stored: generation is bound by reading weights.
#pragma once

#include "kernels/avx512/weights.h"

namespace loongforge::kernels::avx512 {
namespace {

inline constexpr int kFewRows = 4;
inline constexpr int64_t kAhead = 2048;  // bytes of weight that are asked for in advance

// sum += row's pair (k, k + 1) * 16 columns of pairs. a: the pair's place in the A panel.
// A's elements are read where they are used: kept in registers over four groups of columns they
// would fill all of them.
LF_INLINE __m512 add_pair(const Bf16* a, int row, __m512i words, __m512 sum) {
  return DotOp::mul_add_at(reinterpret_cast<const int32_t*>(a) + row, words, sum);
}
LF_INLINE __m512 add_pair(const float* a, int row, __m512i words, __m512 sum) {
  __m512i odd, even;
  split(words, &odd, &even);
  sum = FmaOp::mul_add_at(a + row, _mm512_castsi512_ps(odd), sum);
  return FmaOp::mul_add_at(a + 6 + row, _mm512_castsi512_ps(even), sum);
}

#define LF_FEW_ROWS(X) X(0) X(1) X(2) X(3)
#define LF_FEW_START(i)                          \
  __m512 c##i##0 = _mm512_setzero_ps();          \
  __m512 c##i##1 = _mm512_setzero_ps();          \
  __m512 c##i##2 = _mm512_setzero_ps();          \
  __m512 c##i##3 = _mm512_setzero_ps();          \
  if constexpr (i < kRows) {                     \
    c##i##0 = _mm512_loadu_ps(c + i * ldc);      \
    c##i##1 = _mm512_loadu_ps(c + i * ldc + 16); \
    c##i##2 = _mm512_loadu_ps(c + i * ldc + 32); \
    c##i##3 = _mm512_loadu_ps(c + i * ldc + 48); \
  }
#define LF_FEW_STORE(i)                          \
  if constexpr (i < kRows) {                     \
    _mm512_storeu_ps(c + i * ldc, c##i##0);      \
    _mm512_storeu_ps(c + i * ldc + 16, c##i##1); \
    _mm512_storeu_ps(c + i * ldc + 32, c##i##2); \
    _mm512_storeu_ps(c + i * ldc + 48, c##i##3); \
  }
#define LF_FEW_LOW(i, g) \
  if constexpr (i < kRows) c##i##g = add_pair(a, i, w.lo, c##i##g);
#define LF_FEW_HIGH(i, g) \
  if constexpr (i < kRows) c##i##g = add_pair(a + 12, i, w.hi, c##i##g);
#define LF_FEW_GROUP(g)                                                                         \
  {                                                                                             \
    const Words w = decode(t, _mm512_loadu_si512(src + g * 64));                                \
    _mm_prefetch(reinterpret_cast<const char*>(src + g * 64 + kAhead), _MM_HINT_T0);            \
    LF_FEW_LOW(0, g) LF_FEW_LOW(1, g) LF_FEW_LOW(2, g) LF_FEW_LOW(3, g) if constexpr (!kHalf) { \
      LF_FEW_HIGH(0, g) LF_FEW_HIGH(1, g) LF_FEW_HIGH(2, g) LF_FEW_HIGH(3, g)                   \
    }                                                                                           \
  }

// FP8, columns n0 .. n0 + 63 of W^T, rows k0 .. k0 + k.
template <class Tile, int kRows>
[[gnu::noinline]] void few_fp8(const PackedWeight& weight, int64_t n0, int64_t k0, int64_t k,
                               const typename Tile::Operand* a, float* c, int64_t ldc) {
  const uint16_t* images = fp8_images(weight.elem);
  const int8_t* exps = weight.scale_exps +
                       n0 / kWeightBlock * ((weight.k + kWeightBlock - 1) / kWeightBlock) +
                       k0 / kWeightBlock;
  const uint8_t* src = weight.data + n0 * padded(weight.k) + k0 * 64;
  int64_t pairs = (k + 1) / 2;
  LF_FEW_ROWS(LF_FEW_START)
  for (; pairs > 0; pairs -= kWeightBlock / 2, ++exps) {
    const ImageTable t = image_table(images, *exps, Tile::kRounds);
    int64_t fours = pairs < kWeightBlock / 2 ? pairs / 2 : kWeightBlock / 4;
    constexpr bool kHalf = false;
    for (; fours > 0; --fours, src += 256, a += 24) {
      LF_FEW_GROUP(0) LF_FEW_GROUP(1) LF_FEW_GROUP(2) LF_FEW_GROUP(3)
    }
    if (pairs < kWeightBlock / 2 && pairs % 2 != 0) {
      constexpr bool kHalf = true;
      LF_FEW_GROUP(0) LF_FEW_GROUP(1) LF_FEW_GROUP(2) LF_FEW_GROUP(3)
    }
  }
  LF_FEW_ROWS(LF_FEW_STORE)
}
#undef LF_FEW_GROUP
#undef LF_FEW_HIGH
#undef LF_FEW_LOW

#define LF_FEW_ADD(i, g) \
  if constexpr (i < kRows) c##i##g = add_pair(a, i, w, c##i##g);
#define LF_FEW_GROUP(g)                                                              \
  {                                                                                  \
    const __m512i w = _mm512_loadu_si512(src + g * 64);                              \
    _mm_prefetch(reinterpret_cast<const char*>(src + g * 64 + kAhead), _MM_HINT_T1); \
    LF_FEW_ADD(0, g) LF_FEW_ADD(1, g) LF_FEW_ADD(2, g) LF_FEW_ADD(3, g)              \
  }

// The same for a bf16 weight.
template <class Tile, int kRows>
[[gnu::noinline]] void few_bf16(const PackedWeight& weight, int64_t n0, int64_t k0, int64_t k,
                                const typename Tile::Operand* a, float* c, int64_t ldc) {
  const uint8_t* src = weight.data + (n0 * padded(weight.k) + k0 * 64) * 2;
  LF_FEW_ROWS(LF_FEW_START)
  for (int64_t pairs = (k + 1) / 2; pairs > 0; --pairs, src += 256, a += 12) {
    LF_FEW_GROUP(0) LF_FEW_GROUP(1) LF_FEW_GROUP(2) LF_FEW_GROUP(3)
  }
  LF_FEW_ROWS(LF_FEW_STORE)
}
#undef LF_FEW_GROUP
#undef LF_FEW_ADD
#undef LF_FEW_STORE
#undef LF_FEW_START
#undef LF_FEW_ROWS

// c[i][0 .. 63] (+)= rows i < rows of a, times columns n0 .. n0 + 63 of W^T. REQUIRES rows <=
// kFewRows.
template <class Tile>
void few_of_weight_t(int rows, const PackedWeight& w, int64_t n0, int64_t k0, int64_t k,
                     const typename Tile::Operand* a, float* c, int64_t ldc, bool accumulate) {
  using Fn = void (*)(const PackedWeight&, int64_t, int64_t, int64_t, const typename Tile::Operand*,
                      float*, int64_t);
  static constexpr Fn kFp8[kFewRows] = {few_fp8<Tile, 1>, few_fp8<Tile, 2>, few_fp8<Tile, 3>,
                                        few_fp8<Tile, 4>};
  static constexpr Fn kBf16[kFewRows] = {few_bf16<Tile, 1>, few_bf16<Tile, 2>, few_bf16<Tile, 3>,
                                         few_bf16<Tile, 4>};
  for (int i = 0; i < rows && !accumulate; ++i) memset(c + i * ldc, 0, 64 * sizeof(float));
  if (w.elem == Elem::kNf4) return few_of_nf4_t<Tile>(rows, w, n0, k0, k, a, c, ldc);
  (w.elem == Elem::kBf16 ? kBf16 : kFp8)[rows - 1](w, n0, k0, k, a, c, ldc);
}

}  // namespace
}  // namespace loongforge::kernels::avx512
