// Decoding on AVX-512: FP8 codes and NF4 codes to operands, and the turning of stored blocks.
#pragma once

#include "kernels/avx512/pairs.h"

namespace loongforge::kernels::avx512 {
namespace {

// FP8 codes to bf16 images: two 128-entry byte tables.
struct ImageTable {
  __m512i low[2], high[2];

  ImageTable() = default;
  // Of code * 2^exp. flushed: under 2^-55 becomes 0.
  LF_INLINE ImageTable(const uint16_t* images, int exp, bool flushed) {
    const __m512i step = _mm512_set1_epi16(static_cast<int16_t>(exp * 128));
    const __m512i least = _mm512_set1_epi16(flushed ? (127 - 55) << 7 : 0);
    // Even bytes of two vectors joined, and odd bytes.
    alignas(64) uint8_t even_bytes[64], odd_bytes[64];
    for (int i = 0; i < 64; ++i) {
      even_bytes[i] = static_cast<uint8_t>(2 * i);
      odd_bytes[i] = static_cast<uint8_t>(2 * i + 1);
    }
    const __m512i even = _mm512_load_si512(even_bytes), odd = _mm512_load_si512(odd_bytes);
    for (int half = 0; half < 2; ++half) {
      __m512i x[2];
#pragma GCC unroll 16
      for (int i = 0; i < 2; ++i) {
        x[i] = _mm512_loadu_si512(images + half * 64 + i * 32);
        x[i] = _mm512_maskz_add_epi16(_mm512_test_epi16_mask(x[i], x[i]), x[i], step);
        x[i] = _mm512_maskz_mov_epi16(_mm512_cmpge_epi16_mask(x[i], least), x[i]);
      }
      low[half] = _mm512_permutex2var_epi8(x[0], even, x[1]);
      high[half] = _mm512_permutex2var_epi8(x[0], odd, x[1]);
    }
  }

  // 16 pairs of bf16 each: codes 0 .. 7 of every 128-bit lane, and 8 .. 15.
  LF_INLINE Words decode(__m512i codes) const {
    const __m512i below = _mm512_permutex2var_epi8(low[0], codes, low[1]);
    const __m512i magnitude = _mm512_permutex2var_epi8(high[0], codes, high[1]);
    // magnitude | (codes & 0x80)
    const __m512i above = _mm512_ternarylogic_epi32(magnitude, codes, _mm512_set1_epi8(-128), 0xF8);
    return Words{_mm512_unpacklo_epi8(below, above), _mm512_unpackhi_epi8(below, above)};
  }
};

template <class Tile>
LF_INLINE void store_values(typename Tile::Operand* panel, int64_t pair, int group, V even, V odd) {
  PairRow<typename Tile::Operand, Tile::kRounds> row;
  make_pairs(even, odd, &row);
  store_row(panel, pair, group, row);
}

// 16 rows (n) x 64 columns (k) of FP8: codes of group g stand at src + 256 * (k/4) + n's part.
template <class Operand>
LF_INLINE void fp8_rows16(const ImageTable& t, const uint8_t* src, int64_t pairs, Operand* dst) {
  // Within a group: from [n/4][k/2][n%4][k%2] to [n/2][k][n%2], so that a lane holds two pairs of n
  // for four k.
  alignas(64) uint8_t order_bytes[64];
  for (int i = 0; i < 64; ++i) {
    const int n = i / 8 * 2 + i % 2, k = i / 2 % 4;
    order_bytes[i] = static_cast<uint8_t>(n / 4 * 16 + k / 2 * 8 + n % 4 * 2 + k % 2);
  }
  const __m512i order = _mm512_load_si512(order_bytes);
  for (int q = 0; q < 4; ++q, src += 1024) {
    __m512i x[4], u[4];
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i)
      x[i] = _mm512_permutexvar_epi8(order, _mm512_loadu_si512(src + i * 256));
    // 4 x 4 transpose of 128-bit lanes: y[i] = lane i of every group = pairs 2i and 2i + 1.
    u[0] = _mm512_shuffle_i32x4(x[0], x[1], 0x44);
    u[1] = _mm512_shuffle_i32x4(x[0], x[1], 0xEE);
    u[2] = _mm512_shuffle_i32x4(x[2], x[3], 0x44);
    u[3] = _mm512_shuffle_i32x4(x[2], x[3], 0xEE);
    const __m512i y[4] = {
        _mm512_shuffle_i32x4(u[0], u[2], 0x88), _mm512_shuffle_i32x4(u[0], u[2], 0xDD),
        _mm512_shuffle_i32x4(u[1], u[3], 0x88), _mm512_shuffle_i32x4(u[1], u[3], 0xDD)};
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
      if (2 * i >= pairs) break;
      const Words z = t.decode(y[i]);
      store_pairs(dst, 2 * i, q, z.lo);
      if (2 * i + 1 < pairs) store_pairs(dst, 2 * i + 1, q, z.hi);
    }
  }
}

// 16 rows (n) x 64 columns (k) of bf16 or fp32; src: the block's first row group.
template <class Operand>
LF_INLINE void bf16_rows16(const Bf16* src, int64_t pairs, Operand* dst) {
  for (int q = 0; q < 2; ++q, src += 16 * 128) {
    __m512i r[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(src + i * 128);
    transpose16(r);
#pragma GCC unroll 16
    for (int i = 0; i < 8; ++i) {
      if (i >= pairs) break;
      const Words z = interleave(r[2 * i], r[2 * i + 1]);
      store_pairs(dst, i, 2 * q, z.lo);
      store_pairs(dst, i, 2 * q + 1, z.hi);
    }
  }
}
template <class Tile>
LF_INLINE void f32_rows16(const float* src, int64_t pairs, typename Tile::Operand* dst) {
  for (int q = 0; q < 4; ++q, src += 16 * 64) {
    __m512i r[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(src + (i ^ 1) * 64);
    transpose16(r);
#pragma GCC unroll 16
    for (int i = 0; i < 8; ++i)
      if (i < pairs) store_values<Tile>(dst, i, q, V::of_int(r[2 * i]), V::of_int(r[2 * i + 1]));
  }
}

// Rows `even` and `odd` (null: zeros) of 64 plain codes, the first cols of them valid, each with
// its own exponent, as pair `pair` of a panel.
template <bool kRound, class Operand>
LF_INLINE void fp8_row_pair(const ImageTable& t, const uint8_t* even_codes,
                            const uint8_t* odd_codes, int cols, int even_exp, int odd_exp,
                            int64_t pair, Operand* dst) {
  // Four columns of each quarter side by side, so that unpacking within lanes ends in column order.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __mmask64 valid = cols >= 64 ? ~__mmask64{0} : (__mmask64{1} << cols) - 1;
  const __m512i least = _mm512_set1_epi16(kRound ? (127 - 55) << 7 : 0);
  const __m512i magnitude = _mm512_set1_epi16(0x7FFF);
  const auto load = [&](const uint8_t* codes) {
    return _mm512_permutexvar_epi32(order, _mm512_maskz_loadu_epi8(valid, codes));
  };
  const __m512i even = load(even_codes);
  const __m512i odd = odd_codes != nullptr ? load(odd_codes) : _mm512_setzero_si512();
  const uint32_t steps =
      static_cast<uint32_t>(even_exp * 128 & 0xFFFF) | static_cast<uint32_t>(odd_exp * 128) << 16;
  const __m512i step = _mm512_set1_epi32(static_cast<int>(steps));
  const Words x = t.decode(_mm512_unpacklo_epi8(even, odd));
  const Words y = t.decode(_mm512_unpackhi_epi8(even, odd));
  __m512i z[4] = {x.lo, x.hi, y.lo, y.hi};
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    z[i] = _mm512_mask_add_epi16(z[i], _mm512_test_epi16_mask(z[i], magnitude), z[i], step);
    const __mmask32 kept = _mm512_cmpge_epi16_mask(_mm512_and_si512(z[i], magnitude), least);
    const __m512i flushed = _mm512_maskz_mov_epi16(kept, z[i]);
    store_pairs(dst, pair, i, _mm512_or_si512(flushed, _mm512_andnot_si512(magnitude, z[i])));
  }
}

// ---- NF4.
struct Nf4Table {
  using Words = __m512i;
  __m512 values = _mm512_load_ps(kNf4Values);

  static LF_INLINE Words load(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static LF_INLINE Words next(Words words) { return _mm512_srli_epi32(words, 4); }
  // A look-up reads no other bit than the lowest four.
  template <int kNibble>
  LF_INLINE V at(Words words) const {
    const __m512i index = kNibble == 0 ? words : _mm512_srli_epi32(words, 4 * kNibble);
    return V{_mm512_permutexvar_ps(index, values)};
  }
};

LF_INLINE void put_pair(float* panel, int64_t pair, int group, V odd, V even) {
  odd.store(panel + pair * 128 + group * 16);
  even.store(panel + pair * 128 + 64 + group * 16);
}
// Operands are bf16 images: their lower halves are 0.
LF_INLINE void put_pair(Bf16* panel, int64_t pair, int group, V odd, V even) {
  store_pairs(panel, pair, group,
              _mm512_or_si512(odd.as_int(), _mm512_srli_epi32(even.as_int(), 16)));
}

// A row n of W: k in the lanes.
template <bool kRound>
struct Nf4Row {
  const uint8_t* words;  // the row's in its block, 64 words apart
  __m512 table;          // of operands

  LF_INLINE Nf4Row(const uint8_t* row, float absmax) : words(row) {
    const V values = V::of(_mm512_load_ps(kNf4Values)) * V::set1(absmax);
    table = (kRound ? values.to_bf16() : values).v;
  }
  // k = 16 q .. 16 q + 15.
  LF_INLINE V operands(int q) const {
    const __m512i shifts =
        _mm512_setr_epi32(4, 0, 12, 8, 20, 16, 28, 24, 4, 0, 12, 8, 20, 16, 28, 24);
    int32_t low, high;
    memcpy(&low, words + 2 * q * 256, 4);
    memcpy(&high, words + (2 * q + 1) * 256, 4);
    const __m512i both = _mm512_mask_set1_epi32(_mm512_set1_epi32(low), 0xFF00, high);
    return V{_mm512_permutexvar_ps(_mm512_srlv_epi32(both, shifts), table)};
  }
};

}  // namespace
}  // namespace loongforge::kernels::avx512
