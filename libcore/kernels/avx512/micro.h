// The micro-kernels of AVX-512: one step of the generic register tiles, and products of up to 4
// rows with weights that are decoded in registers and never stored: generation is bound by reading
// weights.
//
// Precision::kBf16 has two tiles of the same results: by DotStep (vdpbf16ps) and by FmaStep (fp32
// operands, zmm FMA). The first is twice as fast on Zen 4, the second on Sapphire Rapids, whose
// vdpbf16ps starts every other cycle.
#pragma once

#include "kernels/avx512/decode.h"
#include "kernels/generic/panel_nf4.h"
#include "kernels/generic/register_tile.h"

namespace loongforge::kernels::avx512 {
namespace {

// One step of a tile: 32-bit elements, an fp32 value or a pair of bf16. The sums are written as asm
// so that each stays in its register: g++ 12 rotates them through the factors' registers otherwise,
// with moves in between.
#ifdef LF_EMULATE_AVX512
#define LF_ACCUMULATE(instruction, intrinsic) sum = intrinsic
#define LF_ACCUMULATE_AT(instruction) sum = mul_add(broadcast(p), y, sum)
#define LF_HOLD(a, b, c, d)
#else
#define LF_ACCUMULATE_AT(instruction) \
  __asm__(instruction " %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(y), "m"(*p))
#define LF_ACCUMULATE(instruction, intrinsic) \
  __asm__(instruction " %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#define LF_HOLD(a, b, c, d) __asm__("" ::"v"(a), "v"(b), "v"(c), "v"(d))
#endif
struct FmaStep {
  using Element = float;
  using R = V;
  static constexpr int kMr = 6, kNr = 64, kPerPair = 2;
  static LF_INLINE __m512 load(const float* p) { return _mm512_loadu_ps(p); }
  static LF_INLINE __m512 broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static LF_INLINE void hold([[maybe_unused]] __m512 a, [[maybe_unused]] __m512 b,
                             [[maybe_unused]] __m512 c, [[maybe_unused]] __m512 d) {
    LF_HOLD(a, b, c, d);
  }
  static LF_INLINE V mul_add(__m512 x, __m512 y, V sum) { return V{mul_add(x, y, sum.v)}; }
  static LF_INLINE __m512 mul_add(__m512 x, __m512 y, __m512 sum) {
    LF_ACCUMULATE("vfmadd231ps", _mm512_fmadd_ps(x, y, sum));
    return sum;
  }
  // The same with *p broadcast, in one instruction.
  static LF_INLINE __m512 mul_add_at(const float* p, __m512 y, __m512 sum) {
    LF_ACCUMULATE_AT("vfmadd231ps");
    return sum;
  }
};
struct DotStep {
  using Element = int32_t;
  using R = V;
  static constexpr int kMr = 6, kNr = 64, kPerPair = 1;
  static LF_INLINE __m512i load(const int32_t* p) { return _mm512_loadu_si512(p); }
  static LF_INLINE __m512i broadcast(const int32_t* p) { return _mm512_set1_epi32(*p); }
  static LF_INLINE void hold([[maybe_unused]] __m512i a, [[maybe_unused]] __m512i b,
                             [[maybe_unused]] __m512i c, [[maybe_unused]] __m512i d) {
    LF_HOLD(a, b, c, d);
  }
  static LF_INLINE V mul_add(__m512i x, __m512i y, V sum) { return V{mul_add(x, y, sum.v)}; }
  static LF_INLINE __m512 mul_add(__m512i x, __m512i y, __m512 sum) {
    LF_ACCUMULATE("vdpbf16ps", _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)y));
    return sum;
  }
  static LF_INLINE __m512 mul_add_at(const int32_t* p, __m512i y, __m512 sum) {
    LF_ACCUMULATE_AT("vdpbf16ps");
    return sum;
  }
};
#undef LF_ACCUMULATE
#undef LF_ACCUMULATE_AT
#undef LF_HOLD

// The step that multiplies such operands.
template <class Operand>
struct StepOf;
template <>
struct StepOf<float> {
  using Step = FmaStep;
};
template <>
struct StepOf<Bf16> {
  using Step = DotStep;
};

inline constexpr int64_t kAhead = 2048;  // bytes of weight that are asked for in advance

// sum += row's pair (k, k + 1) * 16 columns of pairs. a: the pair's place in the A panel.
// A's elements are read where they are used: kept in registers over four groups of columns they
// would fill all of them.
LF_INLINE __m512 add_pair(const Bf16* a, int row, __m512i words, __m512 sum) {
  return DotStep::mul_add_at(reinterpret_cast<const int32_t*>(a) + row, words, sum);
}
LF_INLINE __m512 add_pair(const float* a, int row, __m512i words, __m512 sum) {
  __m512i odd, even;
  split(words, &odd, &even);
  sum = FmaStep::mul_add_at(a + row, _mm512_castsi512_ps(odd), sum);
  return FmaStep::mul_add_at(a + 6 + row, _mm512_castsi512_ps(even), sum);
}

#define LF_FEW_ROWS(X) X(0) X(1) X(2) X(3)
#define LF_FEW_COLS(X, i) X(i, 0) X(i, 1) X(i, 2) X(i, 3) X(i, 4) X(i, 5) X(i, 6) X(i, 7)
#define LF_FEW_START_ONE(i, g)          \
  __m512 c##i##g = _mm512_setzero_ps(); \
  if constexpr (i < kRows && g < 4 * kPanels) c##i##g = _mm512_loadu_ps(c + i * ldc + 16 * g);
#define LF_FEW_START(i) LF_FEW_COLS(LF_FEW_START_ONE, i)
#define LF_FEW_STORE_ONE(i, g) \
  if constexpr (i < kRows && g < 4 * kPanels) _mm512_storeu_ps(c + i * ldc + 16 * g, c##i##g);
#define LF_FEW_STORE(i) LF_FEW_COLS(LF_FEW_STORE_ONE, i)
// The weight's groups of 16 columns, four to a panel.
#define LF_FEW_GROUPS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define LF_FEW_SOURCE(g) (g < 4 ? src : next) + g % 4 * 64
#define LF_FEW_LOW(i, g) \
  if constexpr (i < kRows) c##i##g = add_pair(a, i, w.lo, c##i##g);
#define LF_FEW_HIGH(i, g) \
  if constexpr (i < kRows) c##i##g = add_pair(a + 12, i, w.hi, c##i##g);
#define LF_FEW_GROUP(g)                                                                         \
  if constexpr (g < 4 * kPanels) {                                                              \
    const Words w = t.decode(_mm512_loadu_si512(LF_FEW_SOURCE(g)));                             \
    _mm_prefetch(reinterpret_cast<const char*>(LF_FEW_SOURCE(g) + kAhead), _MM_HINT_T0);        \
    LF_FEW_LOW(0, g) LF_FEW_LOW(1, g) LF_FEW_LOW(2, g) LF_FEW_LOW(3, g) if constexpr (!kHalf) { \
      LF_FEW_HIGH(0, g) LF_FEW_HIGH(1, g) LF_FEW_HIGH(2, g) LF_FEW_HIGH(3, g)                   \
    }                                                                                           \
  }

// FP8, 64 columns of W^T from a K block's start on, or of two panels, which are `panel` bytes apart
// and share their blocks of 128 k; exps: of those.
template <class Tile, int kRows, int kPanels>
[[gnu::noinline]] void few_fp8(const uint8_t* src, int64_t panel, const uint16_t* images,
                               const int8_t* exps, int64_t pairs, const typename Tile::Operand* a,
                               float* c, int64_t ldc) {
  LF_FEW_ROWS(LF_FEW_START)
  [[maybe_unused]] const uint8_t* next = src + panel;
  for (; pairs > 0; pairs -= kWeightBlock / 2, ++exps) {
    const ImageTable t(images, *exps, Tile::kRounds);
    int64_t fours = pairs < kWeightBlock / 2 ? pairs / 2 : kWeightBlock / 4;
    constexpr bool kHalf = false;
    for (; fours > 0; --fours, src += 256, next += 256, a += 24) {
      LF_FEW_GROUPS(LF_FEW_GROUP)
    }
    if (pairs < kWeightBlock / 2 && pairs % 2 != 0) {
      constexpr bool kHalf = true;
      LF_FEW_GROUPS(LF_FEW_GROUP)
    }
  }
  LF_FEW_ROWS(LF_FEW_STORE)
}
#undef LF_FEW_GROUP
#undef LF_FEW_HIGH
#undef LF_FEW_LOW

#define LF_FEW_ADD(i, g) \
  if constexpr (i < kRows) c##i##g = add_pair(a, i, w, c##i##g);
#define LF_FEW_GROUP(g)                                                                  \
  if constexpr (g < 4 * kPanels) {                                                       \
    const __m512i w = _mm512_loadu_si512(LF_FEW_SOURCE(g));                              \
    _mm_prefetch(reinterpret_cast<const char*>(LF_FEW_SOURCE(g) + kAhead), _MM_HINT_T1); \
    LF_FEW_ADD(0, g) LF_FEW_ADD(1, g) LF_FEW_ADD(2, g) LF_FEW_ADD(3, g)                  \
  }

// The same for a bf16 weight.
template <class Tile, int kRows, int kPanels>
[[gnu::noinline]] void few_bf16(const uint8_t* src, int64_t panel, int64_t pairs,
                                const typename Tile::Operand* a, float* c, int64_t ldc) {
  LF_FEW_ROWS(LF_FEW_START)
  [[maybe_unused]] const uint8_t* next = src + panel;
  for (; pairs > 0; --pairs, src += 256, next += 256, a += 12) {
    LF_FEW_GROUPS(LF_FEW_GROUP)
  }
  LF_FEW_ROWS(LF_FEW_STORE)
}
#undef LF_FEW_GROUP
#undef LF_FEW_ADD
#undef LF_FEW_SOURCE
#undef LF_FEW_GROUPS
#undef LF_FEW_STORE
#undef LF_FEW_STORE_ONE
#undef LF_FEW_START
#undef LF_FEW_START_ONE
#undef LF_FEW_COLS
#undef LF_FEW_ROWS

// ---- NF4.
LF_INLINE __m512 add_nf4_pair(const Bf16* a, int row, __m512 odd, __m512 even, __m512 sum) {
  const __m512i words =
      _mm512_or_si512(_mm512_castps_si512(odd), _mm512_srli_epi32(_mm512_castps_si512(even), 16));
  return DotStep::mul_add_at(reinterpret_cast<const int32_t*>(a) + row, words, sum);
}
LF_INLINE __m512 add_nf4_pair(const float* a, int row, __m512 odd, __m512 even, __m512 sum) {
  sum = FmaStep::mul_add_at(a + row, odd, sum);
  return FmaStep::mul_add_at(a + 6 + row, even, sum);
}

#define LF_NF4_ROWS(X) X(0) X(1) X(2) X(3)
#define LF_NF4_START(i)                          \
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
#define LF_NF4_STORE(i)                          \
  if constexpr (i < kRows) {                     \
    _mm512_storeu_ps(c + i * ldc, c##i##0);      \
    _mm512_storeu_ps(c + i * ldc + 16, c##i##1); \
    _mm512_storeu_ps(c + i * ldc + 32, c##i##2); \
    _mm512_storeu_ps(c + i * ldc + 48, c##i##3); \
  }
#define LF_NF4_ADD(i, g) \
  if constexpr (i < kRows) c##i##g = add_nf4_pair(a, i, odd, even, c##i##g);
#define LF_NF4_GROUP(g)                                                                    \
  {                                                                                        \
    const __m512 odd = nf4_operand<Nf4Rounding::kQuick>(table.at<0>(w##g) * absmax##g).v;  \
    const __m512 even = nf4_operand<Nf4Rounding::kQuick>(table.at<1>(w##g) * absmax##g).v; \
    w##g = _mm512_srli_epi32(w##g, 8);                                                     \
    LF_NF4_ADD(0, g) LF_NF4_ADD(1, g) LF_NF4_ADD(2, g) LF_NF4_ADD(3, g)                    \
  }
#define LF_NF4_PAIR \
  { LF_NF4_GROUP(0) LF_NF4_GROUP(1) LF_NF4_GROUP(2) LF_NF4_GROUP(3) a += 12; }

// One block, 64 columns of W^T; pairs > 0.
template <class Tile, int kRows>
[[gnu::noinline]] void few_nf4(const uint8_t* block, int64_t pairs, const typename Tile::Operand* a,
                               float* c, int64_t ldc) {
  const Nf4Table table;
  const float* scales = nf4_absmax<64>(block);
  const V absmax0 = V::load(scales), absmax1 = V::load(scales + 16), absmax2 = V::load(scales + 32),
          absmax3 = V::load(scales + 48);
  LF_NF4_ROWS(LF_NF4_START)
  for (; pairs > 0; pairs -= 4, block += 256) {
    __m512i w0 = Nf4Table::load(block), w1 = Nf4Table::load(block + 64),
            w2 = Nf4Table::load(block + 128), w3 = Nf4Table::load(block + 192);
    for (int i = 0; i < 4; ++i)
      _mm_prefetch(reinterpret_cast<const char*>(block + i * 64 + 2 * kNf4BlockBytes<64>),
                   _MM_HINT_T0);
    if (pairs >= 4) {
      LF_NF4_PAIR LF_NF4_PAIR LF_NF4_PAIR LF_NF4_PAIR
    } else {
      for (int64_t rest = pairs; rest > 0; --rest) LF_NF4_PAIR
    }
  }
  LF_NF4_ROWS(LF_NF4_STORE)
}
#undef LF_NF4_PAIR
#undef LF_NF4_GROUP
#undef LF_NF4_ADD
#undef LF_NF4_STORE
#undef LF_NF4_START
#undef LF_NF4_ROWS

}  // namespace
}  // namespace loongforge::kernels::avx512
