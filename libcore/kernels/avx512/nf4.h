// NF4 weights on AVX-512: B panels, and products of few rows, made from them. Layout: generic/nf4.h
// with panels of 64 n.
//
// W^T has n in its lanes: a word's nibbles are looked up one by one, times the lanes' absmax,
// rounded. W has k in its lanes: one rounded table for each row n.
#pragma once

#include "kernels/avx512/pack.h"
#include "kernels/avx512/tile.h"
#include "kernels/avx512/vec.h"
#include "kernels/generic/nf4.h"

namespace loongforge::kernels::avx512 {
namespace {

inline constexpr int64_t kNf4Panel = 64;
inline constexpr int64_t kNf4Bytes = kNf4BlockBytes<kNf4Panel>;

// How products become operands: fp32 as they are; rounded to bf16 where no value can be subnormal,
// under 2^-55 or so large that the quick rounding overflows; rounded as round_operand does.
enum class Nf4Rounding { kNone, kQuick, kFull };

// The quick rounding adds 2^16 times the value's binade, whose last place is that of a bf16 of this
// binade, to nearest even; it equals to_bf16 for 0 and for 2^-55 <= |x| < 2^111.
template <Nf4Rounding kRounding>
LF_INLINE __m512 nf4_operand(__m512 x) {
  if constexpr (kRounding == Nf4Rounding::kNone) return x;
  if constexpr (kRounding == Nf4Rounding::kFull) return V::of(x).to_bf16().v;
  const __m512 binade = _mm512_castsi512_ps(
      _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(static_cast<int>(0xFF800000u))));
  const __m512 far = _mm512_set1_ps(65536.0f);
  return _mm512_fnmadd_ps(binade, far, _mm512_fmadd_ps(binade, far, x));
}

// Whether the quick rounding is right for all products with these 16 absmax: each is 0 or its
// magnitude is in [2^-50, 2^100).
LF_INLINE bool nf4_quick(__m512 absmax) {
  const __m512 magnitude = V::abs(V::of(absmax)).v;
  const auto inside = _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(0x1p-50f), _CMP_GE_OQ) &
                      _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(0x1p100f), _CMP_LT_OQ);
  const auto zero = _mm512_cmp_ps_mask(magnitude, _mm512_setzero_ps(), _CMP_EQ_OQ);
  return (inside | zero) == 0xFFFF;
}

LF_INLINE __m512i load_words(const uint8_t* p) { return _mm512_loadu_si512(p); }
LF_INLINE __m512 load_absmax(const uint8_t* block, int group) {
  return _mm512_loadu_ps(reinterpret_cast<const float*>(block + kNf4Words * kNf4Panel * 4) +
                         group * 16);
}

// Values of the words' lowest nibbles (a look-up reads no other bit).
template <Nf4Rounding kRounding>
LF_INLINE __m512 nf4_lanes(__m512 table, __m512i words, __m512 absmax) {
  return nf4_operand<kRounding>(_mm512_mul_ps(_mm512_permutexvar_ps(words, table), absmax));
}

LF_INLINE void put_pair(float* panel, int64_t pair, int group, __m512 odd, __m512 even) {
  _mm512_storeu_ps(panel + pair * 128 + group * 16, odd);
  _mm512_storeu_ps(panel + pair * 128 + 64 + group * 16, even);
}
// Operands are bf16 images: their lower halves are 0.
LF_INLINE void put_pair(Bf16* panel, int64_t pair, int group, __m512 odd, __m512 even) {
  store_pairs(
      panel, pair, group,
      _mm512_or_si512(_mm512_castps_si512(odd), _mm512_srli_epi32(_mm512_castps_si512(even), 16)));
}

// 16 n of a block, `pairs` pairs of k.
template <Nf4Rounding kRounding, class Operand>
void nf4_columns(const uint8_t* block, int group, int64_t pairs, Operand* dst) {
  const __m512 table = _mm512_load_ps(kNf4Values);
  const __m512 absmax = load_absmax(block, group);
  const uint8_t* src = block + group * 64;
  int64_t p = 0;
  for (; p + 4 <= pairs; p += 4, src += kNf4Panel * 4) {
    const __m512i words = load_words(src);
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
      const __m512 odd = nf4_lanes<kRounding>(
          table, _mm512_srli_epi32(words, static_cast<unsigned>(8 * i)), absmax);
      const __m512 even = nf4_lanes<kRounding>(
          table, _mm512_srli_epi32(words, static_cast<unsigned>(8 * i + 4)), absmax);
      put_pair(dst, p + i, group, odd, even);
    }
  }
  if (p == pairs) return;
  for (__m512i words = load_words(src); p < pairs; ++p, words = _mm512_srli_epi32(words, 8)) {
    const __m512 odd = nf4_lanes<kRounding>(table, words, absmax);
    put_pair(dst, p, group, odd, nf4_lanes<kRounding>(table, _mm512_srli_epi32(words, 4), absmax));
  }
}

// ---- W^T: columns n0 .. n0 + 63, rows k0 .. k0 + k of the product's B. REQUIRES n0 % 64 == 0, k0
// % 128 == 0.
template <class Tile>
void panel_of_nf4_t(const PackedWeight& w, int64_t n0, int64_t k0, int64_t k,
                    typename Tile::Operand* dst) {
  const uint8_t* block = nf4_block<kNf4Panel>(w, n0, k0);
  for (int64_t pairs = (k + 1) / 2; pairs > 0;
       pairs -= kNf4Block / 2, block += kNf4Bytes, dst += kNf4Block * 64) {
    const int64_t count = pairs < kNf4Block / 2 ? pairs : kNf4Block / 2;
    for (int group = 0; group < 4; ++group) {
      if constexpr (!Tile::kRounds) {
        nf4_columns<Nf4Rounding::kNone>(block, group, count, dst);
      } else if (nf4_quick(load_absmax(block, group))) {
        nf4_columns<Nf4Rounding::kQuick>(block, group, count, dst);
      } else {
        nf4_columns<Nf4Rounding::kFull>(block, group, count, dst);
      }
    }
  }
}

// ---- W: columns j0 .. j0 + 63 (of k), rows n0 .. n0 + n. REQUIRES j0 % 64 == 0, n0 % 128 == 0.
template <class Tile>
struct Nf4Row {
  const uint8_t* words;  // the row's in its block
  __m512 table;          // of operands

  LF_INLINE Nf4Row(const uint8_t* block, int64_t row) : words(block + row * 4) {
    const auto* absmax = reinterpret_cast<const float*>(block + kNf4Words * kNf4Panel * 4) + row;
    const V values = V::of(_mm512_load_ps(kNf4Values)) * V::set1(*absmax);
    table = (Tile::kRounds ? values.to_bf16() : values).v;
  }
  // k = 16 q .. 16 q + 15.
  LF_INLINE __m512 operands(int q) const {
    const __m512i shifts =
        _mm512_setr_epi32(4, 0, 12, 8, 20, 16, 28, 24, 4, 0, 12, 8, 20, 16, 28, 24);
    int32_t low, high;
    memcpy(&low, words + 2 * q * kNf4Panel * 4, 4);
    memcpy(&high, words + (2 * q + 1) * kNf4Panel * 4, 4);
    const __m512i both = _mm512_mask_set1_epi32(_mm512_set1_epi32(low), 0xFF00, high);
    return _mm512_permutexvar_ps(_mm512_srlv_epi32(both, shifts), table);
  }
};

template <class Tile>
void panel_of_nf4(const PackedWeight& w, int64_t j0, int64_t n0, int64_t n,
                  typename Tile::Operand* dst) {
  const int64_t pairs = (n + 1) / 2;
  const uint8_t* block = nullptr;
  for (int64_t p = 0; p < pairs; ++p) {
    const int64_t row = (n0 + 2 * p) % kNf4Panel;
    if (p == 0 || row == 0) block = nf4_block<kNf4Panel>(w, n0 + 2 * p - row, j0);
    // The next panel's block is far away: a line or two of it at a time.
    const uint8_t* next = block + nf4_panel_bytes<kNf4Panel>(w.k) + row / 2 * 64;
    _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
    if (row < 8) _mm_prefetch(reinterpret_cast<const char*>(next + 32 * 64), _MM_HINT_T1);
    const Nf4Row<Tile> even(block, row), odd(block, row + 1);
#pragma GCC unroll 16
    for (int q = 0; q < 4; ++q) put_pair(dst, p, q, odd.operands(q), even.operands(q));
  }
}

// ---- Products of up to 4 rows.
LF_INLINE __m512 add_nf4_pair(const Bf16* a, int row, __m512 odd, __m512 even, __m512 sum) {
  const __m512i words =
      _mm512_or_si512(_mm512_castps_si512(odd), _mm512_srli_epi32(_mm512_castps_si512(even), 16));
  return DotOp::mul_add_at(reinterpret_cast<const int32_t*>(a) + row, words, sum);
}
LF_INLINE __m512 add_nf4_pair(const float* a, int row, __m512 odd, __m512 even, __m512 sum) {
  sum = FmaOp::mul_add_at(a + row, odd, sum);
  return FmaOp::mul_add_at(a + 6 + row, even, sum);
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
#define LF_NF4_GROUP(g)                                                               \
  {                                                                                   \
    const __m512 odd = nf4_lanes<Nf4Rounding::kQuick>(table, w##g, absmax##g);        \
    const __m512 even =                                                               \
        nf4_lanes<Nf4Rounding::kQuick>(table, _mm512_srli_epi32(w##g, 4), absmax##g); \
    w##g = _mm512_srli_epi32(w##g, 8);                                                \
    LF_NF4_ADD(0, g) LF_NF4_ADD(1, g) LF_NF4_ADD(2, g) LF_NF4_ADD(3, g)               \
  }
#define LF_NF4_PAIR \
  { LF_NF4_GROUP(0) LF_NF4_GROUP(1) LF_NF4_GROUP(2) LF_NF4_GROUP(3) a += 12; }

// One block, 64 columns of W^T; pairs > 0.
template <class Tile, int kRows>
[[gnu::noinline]] void few_nf4(const uint8_t* block, int64_t pairs, const typename Tile::Operand* a,
                               float* c, int64_t ldc) {
  const __m512 table = _mm512_load_ps(kNf4Values);
  const __m512 absmax0 = load_absmax(block, 0), absmax1 = load_absmax(block, 1),
               absmax2 = load_absmax(block, 2), absmax3 = load_absmax(block, 3);
  LF_NF4_ROWS(LF_NF4_START)
  for (; pairs > 0; pairs -= 4, block += kNf4Panel * 4) {
    __m512i w0 = load_words(block), w1 = load_words(block + 64), w2 = load_words(block + 128),
            w3 = load_words(block + 192);
    for (int i = 0; i < 4; ++i)
      _mm_prefetch(reinterpret_cast<const char*>(block + i * 64 + 2 * kNf4Bytes), _MM_HINT_T0);
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

template <class Tile>
LF_INLINE void few_nf4_rows(int rows, const uint8_t* block, int64_t pairs,
                            const typename Tile::Operand* a, float* c, int64_t ldc) {
  using Fn = void (*)(const uint8_t*, int64_t, const typename Tile::Operand*, float*, int64_t);
  static constexpr Fn kFns[4] = {few_nf4<Tile, 1>, few_nf4<Tile, 2>, few_nf4<Tile, 3>,
                                 few_nf4<Tile, 4>};
  kFns[rows - 1](block, pairs, a, c, ldc);
}

// c[i][0 .. 63] += rows i < rows of a, times columns n0 .. n0 + 63 of W^T. REQUIRES rows <= 4.
template <class Tile>
void few_of_nf4_t(int rows, const PackedWeight& w, int64_t n0, int64_t k0, int64_t k,
                  const typename Tile::Operand* a, float* c, int64_t ldc) {
  const uint8_t* block = nf4_block<kNf4Panel>(w, n0, k0);
  constexpr int64_t kStep = kNf4Block / 2;
  constexpr int64_t kAElems = kNf4Block * Tile::kMr;
  for (int64_t pairs = (k + 1) / 2; pairs > 0; pairs -= kStep, block += kNf4Bytes, a += kAElems) {
    const int64_t count = pairs < kStep ? pairs : kStep;
    const bool quick = nf4_quick(load_absmax(block, 0)) && nf4_quick(load_absmax(block, 1)) &&
                       nf4_quick(load_absmax(block, 2)) && nf4_quick(load_absmax(block, 3));
    if (quick) {
      few_nf4_rows<Tile>(rows, block, count, a, c, ldc);
    } else {
      // Seldom: the full rounding would not leave the sums their registers.
      alignas(64) typename Tile::Operand panel[kNf4Block * 64];
      for (int group = 0; group < 4; ++group)
        nf4_columns<Nf4Rounding::kFull>(block, group, count, panel);
      Tile::mul(rows, 64, count * 2, a, panel, c, ldc, true);
    }
  }
}

}  // namespace
}  // namespace loongforge::kernels::avx512
