// Packed weights of the AVX2 ISA and how B panels are made from them, and from plain matrices.
//
// A weight [n, k] is cut into panels of 16 n, padded with zeros to multiples of 16 in n and k; a
// panel is [k'][16 n] with k' odd first, so that W^T reads rows of it in order, and W reads 16 x 16
// blocks of it and transposes them.
#pragma once

#include "kernels/avx2/nf4.h"
#include "kernels/avx2/pack.h"
#include "kernels/avx2/tile.h"
#include "kernels/gemm.h"
#include "kernels/generic/fp8_bits.h"

namespace loongforge::kernels::avx2 {
namespace {

// ---- 16 FP8 codes to values. A code moved to the top of a 16-bit word and, for E4M3-LA, its
// exponent to where fp16's low exponent bits are, is the fp16 of value * 2^-3 (E5M2: of the value
// itself), subnormals included.
LF_INLINE __m256 power_of_two(int exp) {
  return _mm256_castsi256_ps(_mm256_set1_epi32((exp + 127) << 23));
}
// kSmall: magnitudes under 2^-55 become 0, which the scale makes possible.
template <bool kE4M3, bool kSmall>
struct Fp8Decoder {
  __m256 scale;

  LF_INLINE V operator()(__m128i codes) const {
    __m256i halves = _mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), kE4M3 ? 7 : 8);
    // The extended sign reached fp16's top exponent bit.
    if constexpr (kE4M3)
      halves = _mm256_and_si256(halves, _mm256_set1_epi16(static_cast<int16_t>(0xBFFF)));
    const __m256 lo = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
    const __m256 hi = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
    return V::of(flush(_mm256_mul_ps(lo, scale)), flush(_mm256_mul_ps(hi, scale)));
  }
  static LF_INLINE __m256 flush(__m256 x) {
    if constexpr (!kSmall) return x;
    const __m256 sign = _mm256_set1_ps(-0.0f);
    const __m256 kept = _mm256_cmp_ps(_mm256_andnot_ps(sign, x), power_of_two(-55), _CMP_GE_OQ);
    return _mm256_and_ps(x, _mm256_or_ps(kept, sign));
  }
};

// f(decoder of code * 2^exp). flushed: under 2^-55 becomes 0.
template <class F>
LF_INLINE void with_decoder(Elem fp8, int exp, bool flushed, F f) {
  const bool small = flushed && exp < -39;  // the smallest code is 2^-16 (E5M2) or 2^-14
  const bool e4m3 = fp8 == Elem::kE4M3;
  const __m256 scale = power_of_two(e4m3 ? exp + 3 : exp);
  if (e4m3 && !small) {
    f(Fp8Decoder<true, false>{scale});
  } else if (e4m3) {
    f(Fp8Decoder<true, true>{scale});
  } else if (!small) {
    f(Fp8Decoder<false, false>{scale});
  } else {
    f(Fp8Decoder<false, true>{scale});
  }
}

LF_INLINE int64_t padded(int64_t x) { return (x + 15) / 16 * 16; }
LF_INLINE int weight_exp(const PackedWeight& w, int64_t row, int64_t col) {
  return w.scale_exps[row / kWeightBlock * ((w.k + kWeightBlock - 1) / kWeightBlock) +
                      col / kWeightBlock];
}

template <bool kRound>
LF_INLINE V operand(V x) {
  return kRound ? x.to_bf16() : x;
}

// ---- W^T: columns n0 .. n0 + 15, rows k0 .. k0 + k of the product's B. REQUIRES n0 % 16 == 0, k0
// % 128 == 0.
template <class Tile>
void panel_of_weight_t(const PackedWeight& w, int64_t n0, int64_t k0, int64_t k, float* dst) {
  if (w.elem == Elem::kNf4) return panel_of_nf4_t<Tile>(w, n0, k0, k, dst);
  const int64_t rows = (k + 1) / 2 * 2;
  const int64_t first = n0 * padded(w.k) + k0 * 16;
  if (w.elem == Elem::kF32) {
    const float* src = reinterpret_cast<const float*>(w.data) + first;
    for (int64_t r = 0; r < rows; ++r)
      operand<Tile::kRounds>(V::load(src + r * 16)).store(dst + r * 16);
    return;
  }
  if (w.elem == Elem::kBf16) {
    const Bf16* src = reinterpret_cast<const Bf16*>(w.data) + first;
    for (int64_t r = 0; r < rows; ++r) V::load(src + r * 16).store(dst + r * 16);
    return;
  }
  for (int64_t r = 0; r < rows; r += kWeightBlock) {
    const int64_t count = rows - r < kWeightBlock ? rows - r : kWeightBlock;
    const uint8_t* src = w.data + first + r * 16;
    float* out = dst + r * 16;
    with_decoder(w.elem, weight_exp(w, n0, k0 + r), Tile::kRounds, [&](auto decode) {
      for (int64_t i = 0; i < count; ++i) decode(load128(src + i * 16)).store(out + i * 16);
    });
  }
}

// ---- 16 x 16 transposes of a block [k'][16 n] (k' odd first) to rows of 16 k.
LF_INLINE void transpose_bytes(const uint8_t* src, __m128i out[16]) {
  __m128i x[16], y[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) x[i] = load128(src + (i ^ 1) * 16);
  // Each step interleaves row i with row i + 8: after four, byte (k, n) has moved to (n, k).
  for (int step = 0; step < 4; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < 8; ++i) {
      y[2 * i] = _mm_unpacklo_epi8(x[i], x[i + 8]);
      y[2 * i + 1] = _mm_unpackhi_epi8(x[i], x[i + 8]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) x[i] = y[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) out[i] = x[i];
}

// rows: how many of the 16 n the panel still takes; row n goes to dst + (n ^ 1) * 16.
template <bool kRound, class T>
LF_INLINE void transpose_values(const T* src, int64_t rows, float* dst) {
  for (int half = 0; half < 4; ++half) {
    const int n0 = half / 2 * 8, k0 = half % 2 * 8;
    __m256 r[8];
#pragma GCC unroll 16
    for (int i = 0; i < 8; ++i) r[i] = load8(src + (k0 + (i ^ 1)) * 16 + n0);
    transpose8(r);
#pragma GCC unroll 16
    for (int i = 0; i < 8; ++i) {
      if (n0 + i >= rows) break;
      const V x = operand<kRound>(V::of(r[i], r[i]));
      _mm256_storeu_ps(dst + ((n0 + i) ^ 1) * 16 + k0, x.lo);
    }
  }
}

// ---- W: columns j0 .. j0 + 15 (of k), rows n0 .. n0 + n. REQUIRES j0 % 16 == 0, n0 % 128 == 0.
template <class Tile>
void panel_of_weight(const PackedWeight& w, int64_t j0, int64_t n0, int64_t n, float* dst) {
  if (w.elem == Elem::kNf4) return panel_of_nf4<Tile>(w, j0, n0, n, dst);
  const int64_t total = (n + 1) / 2 * 2;
  for (int64_t r = 0; r < total; r += 16, dst += 16 * 16) {
    const int64_t row = n0 + r;
    const int64_t rows = total - r < 16 ? total - r : 16;
    const int64_t first = row * padded(w.k) + j0 * 16;
    // The block after the next, which is far away.
    const uint8_t* ahead = w.data + (first + 32 * padded(w.k)) * elem_bytes(w.elem);
    for (int64_t i = 0; i < 4 * elem_bytes(w.elem); ++i)
      _mm_prefetch(reinterpret_cast<const char*>(ahead + i * 64), _MM_HINT_T0);
    if (w.elem == Elem::kF32) {
      transpose_values<Tile::kRounds>(reinterpret_cast<const float*>(w.data) + first, rows, dst);
      continue;
    }
    if (w.elem == Elem::kBf16) {
      transpose_values<false>(reinterpret_cast<const Bf16*>(w.data) + first, rows, dst);
      continue;
    }
    __m128i codes[16];
    transpose_bytes(w.data + first, codes);
    with_decoder(w.elem, weight_exp(w, row, j0), Tile::kRounds, [&](auto decode) {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i)
        if (i < rows) decode(codes[i]).store(dst + (i ^ 1) * 16);
    });
  }
}

// ---- Plain FP8 with row-block exponents: rows k0 .. k0 + k of b, columns j0 .. j0 + 15, the first
// cols of them valid.
template <class Tile>
void panel_of_fp8(const Mat& b, int64_t j0, int cols, int64_t k0, int64_t k, float* dst) {
  for (int64_t kk = 0; kk < (k + 1) / 2 * 2; ++kk) {
    float* out = dst + (kk ^ 1) * 16;
    if (kk == k) {
      V::zero().store(out);
      continue;
    }
    const int64_t row = k0 + kk;
    const int exp = b.exps[row * b.ld_exps + j0 / kFeatureBlock];
    const uint8_t* codes = static_cast<const uint8_t*>(b.data) + row * b.ld + j0;
    // The next rows' lines are far apart, where the CPU does not look for them by itself.
    _mm_prefetch(reinterpret_cast<const char*>(codes + kRowsAhead * b.ld), _MM_HINT_T0);
    alignas(16) uint8_t edge[16] = {};
    if (cols < 16) {
      memcpy(edge, codes, static_cast<size_t>(cols));
      codes = edge;
    }
    with_decoder(b.elem, exp, Tile::kRounds,
                 [&](auto decode) { decode(load128(codes)).store(out); });
  }
}

}  // namespace
}  // namespace loongforge::kernels::avx2
