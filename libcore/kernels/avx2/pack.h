// Packing of operand panels with AVX2: the order of generic/pack.h, vectors at a time. Operands are
// fp32.
#pragma once

#include "kernels/avx2/vec.h"
#include "kernels/generic/pack.h"

namespace loongforge::kernels::avx2 {
namespace {

LF_INLINE __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

LF_INLINE void transpose8(__m256 r[8]) {
  __m256 t[8];
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 2; ++i) {
    r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xEE);
    r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xEE);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
    t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 8; ++i) r[i] = t[i];
}

// ---- 8 values of a row as operands.
LF_INLINE __m256 load8(const float* p) { return _mm256_loadu_ps(p); }
LF_INLINE __m256 load8(const Bf16* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load128(p)), 16));
}
template <class T>
LF_INLINE __m256 load8_part(const T* p, int n) {
  alignas(32) T t[8] = {};
  for (int i = 0; i < n; ++i) t[i] = p[i];
  return load8(t);
}
template <class T>
LF_INLINE __m256 load8_at_most(const T* p, int n) {
  return n >= 8 ? load8(p) : n > 0 ? load8_part(p, n) : _mm256_setzero_ps();
}
// kRound: fp32 is rounded to bf16 images, bf16 only flushed.
template <bool kRound>
LF_INLINE __m256 as_operand(const float*, __m256 x) {
  return kRound ? V::of(x, x).to_bf16().lo : x;
}
template <bool kRound>
LF_INLINE __m256 as_operand(const Bf16*, __m256 x) {
  if constexpr (!kRound) return x;
  const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7FFFFFFF));
  const __m256i kept = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(((127 - 55) << 23) - 1));
  return _mm256_and_ps(x, _mm256_castsi256_ps(kept));
}

// ---- B panels of 16 columns.
inline constexpr int64_t kRowsAhead = 16;  // whose lines are asked for in advance

// src[kk, j]
template <bool kRound, class T>
void pack_b_rows(const T* src, int64_t ld, int cols, int64_t k, float* dst) {
  for (int64_t kk = 0; kk < k; ++kk, src += ld) {
    float* out = dst + (kk ^ 1) * 16;
    _mm_prefetch(reinterpret_cast<const char*>(src + kRowsAhead * ld), _MM_HINT_T0);
    if (cols == 16) {
      _mm256_storeu_ps(out, as_operand<kRound>(src, load8(src)));
      _mm256_storeu_ps(out + 8, as_operand<kRound>(src, load8(src + 8)));
    } else {
      _mm256_storeu_ps(out, as_operand<kRound>(src, load8_at_most(src, cols)));
      _mm256_storeu_ps(out + 8, as_operand<kRound>(src, load8_at_most(src + 8, cols - 8)));
    }
  }
  if (k % 2 != 0) V::zero().store(dst + (k ^ 1) * 16);
}

// src[j, kk]
template <bool kRound, class T>
void pack_b_columns(const T* src, int64_t ld, int cols, int64_t k, float* dst) {
  for (int64_t kk = 0; kk < k; kk += 8) {
    const int n = static_cast<int>(k - kk < 8 ? k - kk : 8);
    for (int half = 0; half < 2; ++half) {
      __m256 r[8];
#pragma GCC unroll 16
      for (int i = 0; i < 8; ++i) {
        const int j = half * 8 + i;
        r[i] = j < cols ? as_operand<kRound>(src, load8_at_most(src + j * ld + kk, n))
                        : _mm256_setzero_ps();
      }
      transpose8(r);
#pragma GCC unroll 16
      for (int i = 0; i < 8; ++i)
        if (i < n + n % 2) _mm256_storeu_ps(dst + ((kk + i) ^ 1) * 16 + half * 8, r[i]);
    }
  }
}

// ---- A panels of 6 rows.
LF_INLINE void store_six(float* dst, __m256 x) {
  _mm_storeu_ps(dst, _mm256_castps256_ps128(x));
  _mm_storel_pi(reinterpret_cast<__m64*>(dst + 4), _mm256_extractf128_ps(x, 1));
}

// src[i, kk]
template <bool kRound, class T>
void pack_a_rows(const T* src, int64_t ld, int valid, int64_t k, float* dst) {
  for (int64_t kk = 0; kk < k; kk += 8, dst += 48) {
    const int n = static_cast<int>(k - kk < 8 ? k - kk : 8);
    __m256 r[8];
#pragma GCC unroll 16
    for (int i = 0; i < 8; ++i)
      r[i] = i < valid ? as_operand<kRound>(src, load8_at_most(src + i * ld + kk, n))
                       : _mm256_setzero_ps();
    transpose8(r);
    if (k - kk > 8) {
      // In ascending order: what a store writes too far, the next one overwrites.
#pragma GCC unroll 16
      for (int i = 0; i < 8; ++i) _mm256_storeu_ps(dst + i * 6, r[i ^ 1]);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < 8; ++i)
        if (i < n + n % 2) store_six(dst + i * 6, r[i ^ 1]);
    }
  }
}

// src[kk, i]
template <bool kRound, class T>
void pack_a_columns(const T* src, int64_t ld, int valid, int64_t k, float* dst) {
  for (int64_t kk = 0; kk < k; ++kk) {
    const T* row = src + kk * ld;
    // Two values too many are the next row's, where there is one.
    const __m256 x = valid == 6 && kk + 1 < k ? load8(row) : load8_part(row, valid);
    store_six(dst + (kk ^ 1) * 6, as_operand<kRound>(src, x));
  }
  if (k % 2 != 0) store_six(dst + (k ^ 1) * 6, _mm256_setzero_ps());
}

}  // namespace
}  // namespace loongforge::kernels::avx2
