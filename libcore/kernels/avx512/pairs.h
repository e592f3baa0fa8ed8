// Rows of pairs on AVX-512: how operands are loaded, transposed, written and decoded. Pairs (k, k +
// 1) of 16 columns or rows are one register of bf16 pairs, a 32-bit word each, or two of fp32.
#pragma once

#include "kernels/avx512/intrinsics.h"
#include "kernels/avx512/vec.h"
#include "kernels/generic/pack.h"
#include "kernels/nf4_format.h"

namespace loongforge::kernels::avx512 {
namespace {

// ---- 16 pairs as a tile's operands.
template <class Operand, bool kRound>
struct PairRow;

template <>
struct PairRow<Bf16, true> {
  __m512i words;  // odd k in the high half
};
template <bool kRound>
struct PairRow<float, kRound> {
  __m512i odd, even;
};

// bf16 values under 2^-55 become 0.
LF_INLINE __m512i flush_bf16(__m512i x) {
  const __m512i doubled = _mm512_slli_epi16(x, 1);  // without the sign
  const __mmask32 kept =
      _mm512_cmpge_epu16_mask(doubled, _mm512_set1_epi16(static_cast<int16_t>((127 - 55) << 8)));
  return _mm512_maskz_mov_epi16(kept, x);
}

LF_INLINE void split(__m512i words, __m512i* odd, __m512i* even) {
  *odd = _mm512_and_si512(words, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u)));
  *even = _mm512_slli_epi32(words, 16);
}

// From words of two bf16; values that are not operands yet are flushed where kRound says so.
template <bool kRound>
LF_INLINE void make_pairs(__m512i words, PairRow<Bf16, kRound>* row) {
  row->words = flush_bf16(words);
}
template <bool kRound>
LF_INLINE void make_pairs(__m512i words, PairRow<float, kRound>* row) {
  split(kRound ? flush_bf16(words) : words, &row->odd, &row->even);
}
// From fp32 values of the even and the odd k.
template <bool kRound>
LF_INLINE void make_pairs(V even, V odd, PairRow<Bf16, kRound>* row) {
  row->words =
      _mm512_or_si512(_mm512_srli_epi32(even.to_bf16().as_int(), 16), odd.to_bf16().as_int());
}
template <bool kRound>
LF_INLINE void make_pairs(V even, V odd, PairRow<float, kRound>* row) {
  row->odd = (kRound ? odd.to_bf16() : odd).as_int();
  row->even = (kRound ? even.to_bf16() : even).as_int();
}

// 32 consecutive k of a row, the first n of them valid and the others 0.
template <class Row>
LF_INLINE void load_row_pairs(const Bf16* p, int n, Row* row) {
  const __mmask32 valid = n >= 32 ? ~__mmask32{0} : (__mmask32{1} << n) - 1;
  make_pairs(_mm512_maskz_loadu_epi16(valid, p), row);
}
template <class Row>
LF_INLINE void load_row_pairs(const float* p, int n, Row* row) {
  const V lo = V::load_part(p, n < 16 ? n : 16),
          hi = n > 16 ? V::load_part(p + 16, n < 32 ? n - 16 : 16) : V::zero();
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  make_pairs(V{_mm512_permutex2var_ps(lo.v, even, hi.v)},
             V{_mm512_permutex2var_ps(lo.v, odd, hi.v)}, row);
}
// ---- Pairs (k, k + 1) of 16 columns written to a B panel, at column 16 * group.
LF_INLINE void store_pairs(Bf16* panel, int64_t pair, int group, __m512i words) {
  _mm512_storeu_si512(panel + pair * 128 + group * 32, words);
}
LF_INLINE void store_pairs(float* panel, int64_t pair, int group, __m512i words) {
  __m512i odd, even;
  split(words, &odd, &even);
  _mm512_storeu_si512(panel + pair * 128 + group * 16, odd);
  _mm512_storeu_si512(panel + pair * 128 + 64 + group * 16, even);
}
LF_INLINE void store_row(Bf16* panel, int64_t pair, int group, const PairRow<Bf16, true>& row) {
  store_pairs(panel, pair, group, row.words);
}
template <bool kRound>
LF_INLINE void store_row(float* panel, int64_t pair, int group, const PairRow<float, kRound>& row) {
  _mm512_storeu_si512(panel + pair * 128 + group * 16, row.odd);
  _mm512_storeu_si512(panel + pair * 128 + 64 + group * 16, row.even);
}

// 16 x 16 transpose of 32-bit elements.
LF_INLINE void transpose16(__m512i r[16]) {
  __m512i t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xDD);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xDD);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xDD);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xDD);
  }
}

struct Words {
  __m512i lo, hi;
};
// Two rows of 32 bf16 (even k, odd k) to words for columns 0 .. 15 and 16 .. 31.
LF_INLINE Words interleave(__m512i even, __m512i odd) {
  // Unpacking works within 128-bit lanes: put the 64-bit quarters of each half side by side first.
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __m512i e = _mm512_permutexvar_epi64(order, even), o = _mm512_permutexvar_epi64(order, odd);
  return Words{_mm512_unpacklo_epi16(e, o), _mm512_unpackhi_epi16(e, o)};
}

LF_INLINE void transpose_rows(const PairRow<Bf16, true> rows[16], int pairs, int64_t pair,
                              int group, Bf16* dst) {
  __m512i r[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = rows[i].words;
  transpose16(r);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    if (i < pairs) store_pairs(dst, pair + i, group, r[i]);
}
template <bool kRound>
LF_INLINE void transpose_rows(const PairRow<float, kRound> rows[16], int pairs, int64_t pair,
                              int group, float* dst) {
  __m512i odd[16], even[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) odd[i] = rows[i].odd;
  transpose16(odd);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    if (i < pairs) _mm512_storeu_si512(dst + (pair + i) * 128 + group * 16, odd[i]);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) even[i] = rows[i].even;
  transpose16(even);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    if (i < pairs) _mm512_storeu_si512(dst + (pair + i) * 128 + 64 + group * 16, even[i]);
}

// Six rows of 16 words to [16][6]: rows are joined two by two, then 64-bit words of the three pairs
// are put in turn.
LF_INLINE void write_columns(const __m512i r[6], __m512i out[6]) {
  __m512i q[3][2];  // rows 2i, 2i + 1: columns 4L, 4L + 1 and 4L + 2, 4L + 3 in each lane L
#pragma GCC unroll 16
  for (int i = 0; i < 3; ++i) {
    q[i][0] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    q[i][1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  // Where column p of a row pair stands in (q[i][0], q[i][1]): 2 (p / 4) + p % 2, + 8 when p % 4
  // >= 2. Output word w of vector v is number 8 v + w of the sequence (column, row pair).
  struct Order {
    alignas(64) int64_t from[6][8];
    uint8_t of_pair[3][6];
  };
  static constexpr Order kOrder = [] {
    Order o{};
#pragma GCC unroll 16
    for (int v = 0; v < 6; ++v) {
      for (int w = 0; w < 8; ++w) {
        const int p = (8 * v + w) / 3, pair = (8 * v + w) % 3;
        o.from[v][w] = 2 * (p / 4) + p % 2 + (p % 4 >= 2 ? 8 : 0);
        o.of_pair[pair][v] = static_cast<uint8_t>(o.of_pair[pair][v] | 1 << w);
      }
    }
    return o;
  }();
#pragma GCC unroll 16
  for (int v = 0; v < 6; ++v) {
    const __m512i from = _mm512_load_si512(kOrder.from[v]);
    const __m512i a = _mm512_permutex2var_epi64(q[0][0], from, q[0][1]);
    const __m512i b = _mm512_permutex2var_epi64(q[1][0], from, q[1][1]);
    const __m512i c = _mm512_permutex2var_epi64(q[2][0], from, q[2][1]);
    out[v] = _mm512_mask_blend_epi64(kOrder.of_pair[2][v],
                                     _mm512_mask_blend_epi64(kOrder.of_pair[1][v], a, b), c);
  }
}

// words: how many of the 96 (16 columns of 6) to write.
LF_INLINE void store_words(void* dst, int words, const __m512i out[6]) {
#pragma GCC unroll 16
  for (int v = 0; v < 6; ++v) {
    const int n = words - v * 16;
    if (n >= 16) {
      _mm512_storeu_si512(static_cast<int32_t*>(dst) + v * 16, out[v]);
    } else if (n > 0) {
      _mm512_mask_storeu_epi32(static_cast<int32_t*>(dst) + v * 16,
                               static_cast<__mmask16>((1u << n) - 1u), out[v]);
    }
  }
}

LF_INLINE void write_a(const PairRow<Bf16, true> rows[6], int pairs, Bf16* dst) {
  __m512i r[6], out[6];
#pragma GCC unroll 16
  for (int i = 0; i < 6; ++i) r[i] = rows[i].words;
  write_columns(r, out);
  store_words(dst, pairs * 6, out);
}
// fp32: columns are 6 odd and 6 even values, so 8 columns at a time are 96 words.
template <bool kRound>
LF_INLINE void write_a(const PairRow<float, kRound> rows[6], int pairs, float* dst) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high =
      _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  for (int half = 0; half < 2; ++half) {
    const int n = pairs - half * 8;
    if (n <= 0) break;
    __m512i r[6], out[6];
#pragma GCC unroll 16
    for (int i = 0; i < 6; ++i)
      r[i] = _mm512_permutex2var_epi32(rows[i].odd, half == 0 ? low : high, rows[i].even);
    write_columns(r, out);
    store_words(dst + half * 96, n * 12, out);
  }
}

// Rows of six values, as 8 words.
LF_INLINE void store_six(void* dst, __m256i words) {
  _mm_storeu_si128(static_cast<__m128i*>(dst), _mm256_castsi256_si128(words));
  _mm_storel_epi64(static_cast<__m128i*>(dst) + 1, _mm256_extracti128_si256(words, 1));
}
LF_INLINE void store_a_pair(Bf16* dst, const PairRow<Bf16, true>& row) {
  store_six(dst, _mm512_castsi512_si256(row.words));
}
template <bool kRound>
LF_INLINE void store_a_pair(float* dst, const PairRow<float, kRound>& row) {
  store_six(dst, _mm512_castsi512_si256(row.odd));
  store_six(dst + 6, _mm512_castsi512_si256(row.even));
}

}  // namespace
}  // namespace loongforge::kernels::avx512
