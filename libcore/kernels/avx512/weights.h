// Packed weights of the AVX-512 ISA and how B panels are made from them, and from plain matrices.
//
// A weight [n, k] is cut into panels of 64 n, each into blocks of 64 k, padded with zeros; a block
// is contiguous:
//   FP8   [k/4][16-column group][64 bytes]: byte (n/4)*16 + (k/2%2)*8 + (n%4)*2 + k%2 of group
//   n/16%4, so that looking up
//         the low and the high bytes of bf16 images and unpacking them yields pairs of k for 16 n;
//   bf16  [k/2][n][k%2]: a B panel of bf16 operands as it stands;
//   fp32  [k'][n], k' odd first: a B panel of fp32 operands as it stands;
//   NF4   see nf4.h.
// So both walks, W^T (panels of n) and W (panels of k), read whole blocks.
#pragma once

#include "kernels/avx512/nf4.h"
#include "kernels/avx512/pack.h"
#include "kernels/avx512/tile.h"
#include "kernels/gemm.h"
#include "kernels/generic/fp8_bits.h"

namespace loongforge::kernels::avx512 {
namespace {

// ---- FP8 codes to bf16 images: two 128-entry byte tables.
struct ImageTable {
  __m512i low[2], high[2];
};

// Of code * 2^exp. flushed: under 2^-55 becomes 0.
LF_INLINE ImageTable image_table(const uint16_t* images, int exp, bool flushed) {
  const __m512i step = _mm512_set1_epi16(static_cast<int16_t>(exp * 128));
  const __m512i least = _mm512_set1_epi16(flushed ? (127 - 55) << 7 : 0);
  // Even bytes of two vectors joined, and odd bytes.
  alignas(64) uint8_t even_bytes[64], odd_bytes[64];
  for (int i = 0; i < 64; ++i) {
    even_bytes[i] = static_cast<uint8_t>(2 * i);
    odd_bytes[i] = static_cast<uint8_t>(2 * i + 1);
  }
  const __m512i even = _mm512_load_si512(even_bytes), odd = _mm512_load_si512(odd_bytes);
  ImageTable t;
  for (int half = 0; half < 2; ++half) {
    __m512i x[2];
#pragma GCC unroll 16
    for (int i = 0; i < 2; ++i) {
      x[i] = _mm512_loadu_si512(images + half * 64 + i * 32);
      x[i] = _mm512_maskz_add_epi16(_mm512_test_epi16_mask(x[i], x[i]), x[i], step);
      x[i] = _mm512_maskz_mov_epi16(_mm512_cmpge_epi16_mask(x[i], least), x[i]);
    }
    t.low[half] = _mm512_permutex2var_epi8(x[0], even, x[1]);
    t.high[half] = _mm512_permutex2var_epi8(x[0], odd, x[1]);
  }
  return t;
}

// 16 pairs of bf16 each: codes 0 .. 7 of every 128-bit lane, and 8 .. 15.
LF_INLINE Words decode(const ImageTable& t, __m512i codes) {
  const __m512i low = _mm512_permutex2var_epi8(t.low[0], codes, t.low[1]);
  const __m512i magnitude = _mm512_permutex2var_epi8(t.high[0], codes, t.high[1]);
  // magnitude | (codes & 0x80)
  const __m512i high = _mm512_ternarylogic_epi32(magnitude, codes, _mm512_set1_epi8(-128), 0xF8);
  return Words{_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)};
}

LF_INLINE int64_t padded(int64_t x) { return (x + 63) / 64 * 64; }
LF_INLINE int weight_exp(const PackedWeight& w, int64_t row, int64_t col) {
  return w.scale_exps[row / kWeightBlock * ((w.k + kWeightBlock - 1) / kWeightBlock) +
                      col / kWeightBlock];
}

template <class Tile>
LF_INLINE void store_values(typename Tile::Operand* panel, int64_t pair, int group, V even, V odd) {
  PairRow<typename Tile::Operand, Tile::kRounds> row;
  make_pairs(even, odd, &row);
  store_row(panel, pair, group, row);
}

// ---- W^T: columns n0 .. n0 + 63, rows k0 .. k0 + k of the product's B. REQUIRES n0 % 64 == 0, k0
// % 128 == 0.
template <class Tile>
void panel_of_weight_t(const PackedWeight& w, int64_t n0, int64_t k0, int64_t k,
                       typename Tile::Operand* dst) {
  if (w.elem == Elem::kNf4) return panel_of_nf4_t<Tile>(w, n0, k0, k, dst);
  const int64_t pairs = (k + 1) / 2;
  const int64_t first = n0 * padded(w.k) + k0 * 64;  // in elements
  if (w.elem == Elem::kF32) {
    const float* src = reinterpret_cast<const float*>(w.data) + first;
    for (int64_t p = 0; p < pairs; ++p, src += 128)
#pragma GCC unroll 16
      for (int g = 0; g < 4; ++g)
        store_values<Tile>(dst, p, g, V::load(src + 64 + g * 16), V::load(src + g * 16));
    return;
  }
  if (w.elem == Elem::kBf16) {
    const Bf16* src = reinterpret_cast<const Bf16*>(w.data) + first;
    for (int64_t p = 0; p < pairs; ++p, src += 128)
#pragma GCC unroll 16
      for (int g = 0; g < 4; ++g) store_pairs(dst, p, g, _mm512_loadu_si512(src + g * 32));
    return;
  }
  const uint8_t* src = w.data + first;
  for (int64_t kk = 0; kk < k; kk += kWeightBlock) {
    const ImageTable t = image_table(fp8_images(w.elem), weight_exp(w, n0, k0 + kk), Tile::kRounds);
    const int64_t end = kk + kWeightBlock < k ? (kk + kWeightBlock) / 2 : pairs;
    int64_t p = kk / 2;
    for (; p + 1 < end; p += 2, src += 256) {
#pragma GCC unroll 16
      for (int g = 0; g < 4; ++g) {
        const Words x = decode(t, _mm512_loadu_si512(src + g * 64));
        store_pairs(dst, p, g, x.lo);
        store_pairs(dst, p + 1, g, x.hi);
      }
    }
    if (p < end)
#pragma GCC unroll 16
      for (int g = 0; g < 4; ++g)
        store_pairs(dst, p, g, decode(t, _mm512_loadu_si512(src + g * 64)).lo);
  }
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
      const Words z = decode(t, y[i]);
      store_pairs(dst, 2 * i, q, z.lo);
      if (2 * i + 1 < pairs) store_pairs(dst, 2 * i + 1, q, z.hi);
    }
  }
}

// 16 rows (n) x 64 columns (k) of bf16 or fp32; src: the block's first row group.
template <class Tile>
LF_INLINE void bf16_rows16(const Bf16* src, int64_t pairs, typename Tile::Operand* dst) {
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

// ---- W: columns j0 .. j0 + 63 (of k), rows n0 .. n0 + n. REQUIRES j0 % 64 == 0, n0 % 128 == 0.
template <class Tile>
void panel_of_weight(const PackedWeight& w, int64_t j0, int64_t n0, int64_t n,
                     typename Tile::Operand* dst) {
  if (w.elem == Elem::kNf4) return panel_of_nf4<Tile>(w, j0, n0, n, dst);
  const int64_t pairs = (n + 1) / 2;
  ImageTable t{};
  for (int64_t p = 0; p < pairs; p += 8, dst += 8 * 128) {
    const int64_t row = n0 + 2 * p;
    const int64_t block = row / 64 * 64 * padded(w.k) + j0 * 64;  // in elements
    const int64_t group = row % 64 / 16;
    // A quarter of the next block of rows, which is far away.
    const int64_t quarter = 16 * elem_bytes(w.elem);
    const uint8_t* next =
        w.data + (block + 64 * padded(w.k)) * elem_bytes(w.elem) + group * quarter * 64;
    for (int64_t i = 0; i < quarter; ++i)
      _mm_prefetch(reinterpret_cast<const char*>(next + i * 64), _MM_HINT_T1);
    if (w.elem == Elem::kF32) {
      f32_rows16<Tile>(reinterpret_cast<const float*>(w.data) + block + group * 16, pairs - p, dst);
    } else if (w.elem == Elem::kBf16) {
      bf16_rows16<Tile>(reinterpret_cast<const Bf16*>(w.data) + block + group * 32, pairs - p, dst);
    } else {
      if (row % kWeightBlock == 0)
        t = image_table(fp8_images(w.elem), weight_exp(w, row, j0), Tile::kRounds);
      fp8_rows16(t, w.data + block + group * 64, pairs - p, dst);
    }
  }
}

// ---- Plain FP8 with row-block exponents: rows k0 .. k0 + k of b, columns j0 .. j0 + 63, the first
// cols of them valid.
template <class Tile>
void panel_of_fp8(const Mat& b, int64_t j0, int cols, int64_t k0, int64_t k,
                  typename Tile::Operand* dst) {
  const ImageTable t = image_table(fp8_images(b.elem), 0, false);
  // Four columns of each quarter side by side, so that unpacking within lanes ends in column order.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __mmask64 valid = cols >= 64 ? ~__mmask64{0} : (__mmask64{1} << cols) - 1;
  const __m512i least = _mm512_set1_epi16(Tile::kRounds ? (127 - 55) << 7 : 0);
  const __m512i magnitude = _mm512_set1_epi16(0x7FFF);
  const auto load_row = [&](int64_t row, int* exp) {
    const uint8_t* codes = static_cast<const uint8_t*>(b.data) + row * b.ld + j0;
    // The next rows' lines are far apart, where the CPU does not look for them by itself.
    _mm_prefetch(reinterpret_cast<const char*>(codes + kRowsAhead * b.ld), _MM_HINT_T1);
    *exp = b.exps[row * b.ld_exps + j0 / kFeatureBlock];
    return _mm512_permutexvar_epi32(order, _mm512_maskz_loadu_epi8(valid, codes));
  };
  for (int64_t kk = 0; kk < k; kk += 2) {
    int exps[2] = {0, 0};
    const __m512i even = load_row(k0 + kk, &exps[0]);
    const __m512i odd = kk + 1 < k ? load_row(k0 + kk + 1, &exps[1]) : _mm512_setzero_si512();
    const uint32_t steps =
        static_cast<uint32_t>(exps[0] * 128 & 0xFFFF) | static_cast<uint32_t>(exps[1] * 128) << 16;
    const __m512i step = _mm512_set1_epi32(static_cast<int>(steps));
    const Words x = decode(t, _mm512_unpacklo_epi8(even, odd));
    const Words y = decode(t, _mm512_unpackhi_epi8(even, odd));
    __m512i z[4] = {x.lo, x.hi, y.lo, y.hi};
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
      z[i] = _mm512_mask_add_epi16(z[i], _mm512_test_epi16_mask(z[i], magnitude), z[i], step);
      const __mmask32 kept = _mm512_cmpge_epi16_mask(_mm512_and_si512(z[i], magnitude), least);
      const __m512i flushed = _mm512_maskz_mov_epi16(kept, z[i]);
      store_pairs(dst, kk / 2, i, _mm512_or_si512(flushed, _mm512_andnot_si512(magnitude, z[i])));
    }
  }
}

// ---- Storage.
// Element (row, col) stands at the sum of both.
LF_INLINE int64_t row_offset(Elem elem, int64_t k_padded, int64_t row) {
  const int64_t n = row % 64;
  const int64_t panel = row / 64 * 64 * k_padded;
  if (elem == Elem::kF32) return panel + n;
  if (elem == Elem::kBf16) return panel + n * 2;
  return panel + n / 16 * 64 + n % 16 / 4 * 16 + n % 4 * 2;
}
LF_INLINE int64_t col_offset(Elem elem, int64_t col) {
  if (elem == Elem::kF32) return (col ^ 1) * 64;
  if (elem == Elem::kBf16) return col / 2 * 128 + col % 2;
  return col / 4 * 256 + col / 2 % 2 * 8 + col % 2;
}

}  // namespace
}  // namespace loongforge::kernels::avx512
