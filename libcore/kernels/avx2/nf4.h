// NF4 weights on AVX2: B panels, and products of few rows, made from them. Layout: generic/nf4.h
// with panels of 16 n.
//
// W^T has n in its lanes: a word's nibbles are looked up one by one, times the lanes' absmax,
// rounded. W has k in its lanes: words of one row are spread and looked up in the same way.
#pragma once

#include "kernels/avx2/pack.h"
#include "kernels/avx2/tile.h"
#include "kernels/avx2/vec.h"
#include "kernels/generic/nf4.h"

namespace loongforge::kernels::avx2 {
namespace {

inline constexpr int64_t kNf4Panel = 16;
inline constexpr int64_t kNf4Bytes = kNf4BlockBytes<kNf4Panel>;

// How products become operands: fp32 as they are; rounded to bf16 where no value can be subnormal,
// under 2^-55 or so large that the quick rounding overflows; rounded as round_operand does.
enum class Nf4Rounding { kNone, kQuick, kFull };

// The quick rounding adds 2^16 times the value's binade, whose last place is that of a bf16 of this
// binade, to nearest even; it equals to_bf16 for 0 and for 2^-55 <= |x| < 2^111.
template <Nf4Rounding kRounding>
LF_INLINE __m256 nf4_operand(__m256 x) {
  if constexpr (kRounding == Nf4Rounding::kNone) return x;
  if constexpr (kRounding == Nf4Rounding::kFull) return V::of(x, x).to_bf16().lo;
  const __m256 binade =
      _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xFF800000u))));
  const __m256 far = _mm256_set1_ps(65536.0f);
  return _mm256_fnmadd_ps(binade, far, _mm256_fmadd_ps(binade, far, x));
}

// Whether the quick rounding is right for all products with these absmax: each is 0 or its
// magnitude is in [2^-50, 2^100).
LF_INLINE bool nf4_quick(__m256 absmax) {
  const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), absmax);
  const __m256 inside =
      _mm256_and_ps(_mm256_cmp_ps(magnitude, _mm256_set1_ps(0x1p-50f), _CMP_GE_OQ),
                    _mm256_cmp_ps(magnitude, _mm256_set1_ps(0x1p100f), _CMP_LT_OQ));
  const __m256 zero = _mm256_cmp_ps(magnitude, _mm256_setzero_ps(), _CMP_EQ_OQ);
  return _mm256_movemask_ps(_mm256_or_ps(inside, zero)) == 0xFF;
}

LF_INLINE __m256i load_words(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
LF_INLINE __m256 load_absmax(const uint8_t* block, int half) {
  return _mm256_loadu_ps(reinterpret_cast<const float*>(block + kNf4Words * kNf4Panel * 4) +
                         half * 8);
}

struct Nf4Table {
  __m256 low = _mm256_load_ps(kNf4Values), high = _mm256_load_ps(kNf4Values + 8);

  // Of the words' lowest nibbles, whose bit 3 also stands in the sign of `top`.
  LF_INLINE __m256 at(__m256i words, __m256i top) const {
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, words),
                            _mm256_permutevar8x32_ps(high, words), _mm256_castsi256_ps(top));
  }
};

// Values of nibble kNibble.
template <Nf4Rounding kRounding, int kNibble>
LF_INLINE __m256 nf4_lanes(const Nf4Table& table, __m256i words, __m256 absmax) {
  const __m256i index = kNibble == 0 ? words : _mm256_srli_epi32(words, 4 * kNibble);
  const __m256i top = kNibble == 7 ? words : _mm256_slli_epi32(words, 28 - 4 * kNibble);
  return nf4_operand<kRounding>(_mm256_mul_ps(table.at(index, top), absmax));
}

template <Nf4Rounding kRounding>
LF_INLINE void nf4_store8(const Nf4Table& t, __m256i words, __m256 absmax, float* dst) {
  _mm256_storeu_ps(dst, nf4_lanes<kRounding, 0>(t, words, absmax));
  _mm256_storeu_ps(dst + 16, nf4_lanes<kRounding, 1>(t, words, absmax));
  _mm256_storeu_ps(dst + 32, nf4_lanes<kRounding, 2>(t, words, absmax));
  _mm256_storeu_ps(dst + 48, nf4_lanes<kRounding, 3>(t, words, absmax));
  _mm256_storeu_ps(dst + 64, nf4_lanes<kRounding, 4>(t, words, absmax));
  _mm256_storeu_ps(dst + 80, nf4_lanes<kRounding, 5>(t, words, absmax));
  _mm256_storeu_ps(dst + 96, nf4_lanes<kRounding, 6>(t, words, absmax));
  _mm256_storeu_ps(dst + 112, nf4_lanes<kRounding, 7>(t, words, absmax));
}

// 8 n of a block, an even number of k.
template <Nf4Rounding kRounding>
void nf4_columns(const uint8_t* block, int half, int64_t k, float* dst) {
  const Nf4Table table;
  const __m256 absmax = load_absmax(block, half);
  const uint8_t* src = block + half * 32;
  dst += half * 8;
  for (; k >= 8; k -= 8, src += kNf4Panel * 4, dst += 128)
    nf4_store8<kRounding>(table, load_words(src), absmax, dst);
  if (k == 0) return;
  for (__m256i words = load_words(src); k > 0; --k, dst += 16, words = _mm256_srli_epi32(words, 4))
    _mm256_storeu_ps(dst, nf4_lanes<kRounding, 0>(table, words, absmax));
}

// ---- W^T: columns n0 .. n0 + 15, rows k0 .. k0 + k of the product's B. REQUIRES n0 % 16 == 0, k0
// % 128 == 0.
template <class Tile>
void panel_of_nf4_t(const PackedWeight& w, int64_t n0, int64_t k0, int64_t k, float* dst) {
  const uint8_t* block = nf4_block<kNf4Panel>(w, n0, k0);
  for (int64_t rows = (k + 1) / 2 * 2; rows > 0;
       rows -= kNf4Block, block += kNf4Bytes, dst += kNf4Block * 16) {
    const int64_t count = rows < kNf4Block ? rows : kNf4Block;
    for (int half = 0; half < 2; ++half) {
      if constexpr (!Tile::kRounds) {
        nf4_columns<Nf4Rounding::kNone>(block, half, count, dst);
      } else if (nf4_quick(load_absmax(block, half))) {
        nf4_columns<Nf4Rounding::kQuick>(block, half, count, dst);
      } else {
        nf4_columns<Nf4Rounding::kFull>(block, half, count, dst);
      }
    }
  }
}

// ---- W: columns j0 .. j0 + 15 (of k), rows n0 .. n0 + n. REQUIRES j0 % 16 == 0, n0 % 128 == 0.
template <Nf4Rounding kRounding>
LF_INLINE void nf4_rows16(const uint8_t* block, int64_t words_row, int64_t rows, float* dst) {
  const Nf4Table table;
  const __m256i shifts = _mm256_setr_epi32(4, 0, 12, 8, 20, 16, 28, 24);
  const __m256i tops = _mm256_sub_epi32(_mm256_set1_epi32(28), shifts);
  const auto* scales = reinterpret_cast<const float*>(block + kNf4Words * kNf4Panel * 4);
  for (int64_t i = 0; i < rows; ++i) {
    const __m256 absmax = _mm256_broadcast_ss(scales + i);
    float* out = dst + (i ^ 1) * 16;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      int32_t word;
      memcpy(&word, block + ((words_row + half) * kNf4Panel + i) * 4, 4);
      const __m256i both = _mm256_set1_epi32(word);
      const __m256 x = table.at(_mm256_srlv_epi32(both, shifts), _mm256_sllv_epi32(both, tops));
      _mm256_storeu_ps(out + half * 8, nf4_operand<kRounding>(_mm256_mul_ps(x, absmax)));
    }
  }
}

template <class Tile>
void panel_of_nf4(const PackedWeight& w, int64_t j0, int64_t n0, int64_t n, float* dst) {
  const int64_t total = (n + 1) / 2 * 2;
  const int64_t words_row = j0 % kNf4Block / 8;
  for (int64_t r = 0; r < total; r += kNf4Panel, dst += kNf4Panel * 16) {
    const uint8_t* block = nf4_block<kNf4Panel>(w, n0 + r, j0);
    // The block after the next, which is far away: the rows of words that are read, and the absmax.
    const uint8_t* ahead = block + 2 * nf4_panel_bytes<kNf4Panel>(w.k);
    _mm_prefetch(reinterpret_cast<const char*>(ahead + words_row * 64), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(ahead + words_row * 64 + 64), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(ahead + kNf4Words * kNf4Panel * 4), _MM_HINT_T0);
    const int64_t rows = total - r < kNf4Panel ? total - r : kNf4Panel;
    if constexpr (!Tile::kRounds) {
      nf4_rows16<Nf4Rounding::kNone>(block, words_row, rows, dst);
    } else if (nf4_quick(load_absmax(block, 0)) && nf4_quick(load_absmax(block, 1))) {
      nf4_rows16<Nf4Rounding::kQuick>(block, words_row, rows, dst);
    } else {
      nf4_rows16<Nf4Rounding::kFull>(block, words_row, rows, dst);
    }
  }
}

// ---- Products of up to 4 rows, 8 columns at a time: more would not fit the registers.
#define LF_NF4_ROWS(X) X(0) X(1) X(2) X(3)
#define LF_NF4_START(i)              \
  __m256 c##i = _mm256_setzero_ps(); \
  if constexpr (i < kRows) c##i = _mm256_loadu_ps(c + i * ldc);
#define LF_NF4_STORE(i) \
  if constexpr (i < kRows) _mm256_storeu_ps(c + i * ldc, c##i);
#define LF_NF4_ADD(i) \
  if constexpr (i < kRows) c##i = mul_add(_mm256_broadcast_ss(a + i), b, c##i);
#define LF_NF4_K(nibble)                                                           \
  {                                                                                \
    const __m256 b = nf4_lanes<Nf4Rounding::kQuick, nibble>(table, words, absmax); \
    LF_NF4_ROWS(LF_NF4_ADD)                                                        \
    a += 6;                                                                        \
  }

// 8 columns of W^T in one block. k is even and > 0.
template <int kRows>
[[gnu::noinline]] void few_nf4(const uint8_t* block, int half, int64_t k, const float* a, float* c,
                               int64_t ldc) {
  const Nf4Table table;
  const __m256 absmax = load_absmax(block, half);
  const uint8_t* src = block + half * 32;
  LF_NF4_ROWS(LF_NF4_START)
  for (; k >= 8; k -= 8, src += kNf4Panel * 4) {
    const __m256i words = load_words(src);
    _mm_prefetch(reinterpret_cast<const char*>(src + 2 * kNf4Bytes), _MM_HINT_T0);
    LF_NF4_K(0) LF_NF4_K(1) LF_NF4_K(2) LF_NF4_K(3) LF_NF4_K(4) LF_NF4_K(5) LF_NF4_K(6) LF_NF4_K(7)
  }
  if (k > 0) {
    __m256i words = load_words(src);
    for (; k > 0; --k) {
      LF_NF4_K(0)
      words = _mm256_srli_epi32(words, 4);
    }
  }
  LF_NF4_ROWS(LF_NF4_STORE)
}
#undef LF_NF4_K
#undef LF_NF4_ADD
#undef LF_NF4_STORE
#undef LF_NF4_START
#undef LF_NF4_ROWS

LF_INLINE void few_nf4_rows(int rows, const uint8_t* block, int64_t k, const float* a, float* c,
                            int64_t ldc) {
  using Fn = void (*)(const uint8_t*, int, int64_t, const float*, float*, int64_t);
  static constexpr Fn kFns[4] = {few_nf4<1>, few_nf4<2>, few_nf4<3>, few_nf4<4>};
  kFns[rows - 1](block, 0, k, a, c, ldc);
  kFns[rows - 1](block, 1, k, a, c + 8, ldc);
}

// c[i][0 .. 15] += rows i < rows of a, times columns n0 .. n0 + 15 of W^T. REQUIRES rows <= 4.
inline void few_of_nf4_t(int rows, const PackedWeight& w, int64_t n0, int64_t k0, int64_t k,
                         const float* a, float* c, int64_t ldc) {
  const uint8_t* block = nf4_block<kNf4Panel>(w, n0, k0);
  for (int64_t rest = (k + 1) / 2 * 2; rest > 0;
       rest -= kNf4Block, block += kNf4Bytes, a += kNf4Block * 6) {
    const int64_t count = rest < kNf4Block ? rest : kNf4Block;
    if (nf4_quick(load_absmax(block, 0)) && nf4_quick(load_absmax(block, 1))) {
      few_nf4_rows(rows, block, count, a, c, ldc);
    } else {
      // Seldom: the full rounding would not leave the sums their registers.
      alignas(32) float panel[kNf4Block * 16];
      for (int half = 0; half < 2; ++half)
        nf4_columns<Nf4Rounding::kFull>(block, half, count, panel);
      TileBf16::mul(rows, 16, count, a, panel, c, ldc, true);
    }
  }
}

}  // namespace
}  // namespace loongforge::kernels::avx2
