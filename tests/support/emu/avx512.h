// AVX-512 (F, BW, VL, DQ, VBMI, BF16) on a machine that has AVX2, FMA and F16C: SIMDe, plus what
// SIMDe 0.7.4 lacks, plus exact forms of what it only approximates. For tests: correct to the bit,
// not fast. Included in place of <immintrin.h> by kernels/avx512/intrinsics.h under
// LF_EMULATE_AVX512.
#pragma once

#ifdef __AVX512F__
#error "the emulation is for code compiled without AVX-512"
#endif

#include <math.h>
#include <stdint.h>
#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wunused-function"
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

namespace lf_emu {
namespace {

#define LF_EMU static inline __attribute__((always_inline))

union Z {
  __m512 f;
  __m512d d;
  __m512i i;
  __m256 f8[2];
  __m256d d4[2];
  __m256i i8[2];
  float f32[16];
  uint32_t u32[16];
  uint16_t u16[32];
  uint8_t u8[64];
};
LF_EMU Z of(__m512 x) {
  Z z;
  z.f = x;
  return z;
}
LF_EMU Z of(__m512i x) {
  Z z;
  z.i = x;
  return z;
}

// ---- Comparisons that SIMDe lacks.
LF_EMU __mmask16 less_u32(__m512i a, __m512i b) {
  const Z x = of(a), y = of(b);
  unsigned mask = 0;
  for (int i = 0; i < 16; ++i) mask |= (x.u32[i] < y.u32[i] ? 1u : 0u) << i;
  return static_cast<__mmask16>(mask);
}
LF_EMU __mmask16 no_common_bit_u32(__m512i a, __m512i b) {
  const Z x = of(a), y = of(b);
  unsigned mask = 0;
  for (int i = 0; i < 16; ++i) mask |= ((x.u32[i] & y.u32[i]) == 0 ? 1u : 0u) << i;
  return static_cast<__mmask16>(mask);
}

// SIMDe 0.7.4's macro of it asks for two operands too many.
LF_EMU __m512i multiply_add_words(__m512i a, __m512i b) {
  Z x = of(a);
  const Z y = of(b);
  for (int i = 0; i < 2; ++i) x.i8[i] = _mm256_madd_epi16(x.i8[i], y.i8[i]);
  return x.i;
}

// ---- Masked loads and stores: memory of lanes that are off is not touched.
template <class R, class T>
LF_EMU R masked_load(uint64_t mask, const void* p) {
  constexpr int kCount = sizeof(R) / sizeof(T);
  T t[kCount] = {};
  for (int i = 0; i < kCount; ++i)
    if ((mask >> i & 1u) != 0) memcpy(&t[i], static_cast<const T*>(p) + i, sizeof(T));
  R r;
  memcpy(&r, t, sizeof r);
  return r;
}
template <class T, class R>
LF_EMU void masked_store(void* p, uint64_t mask, R x) {
  constexpr int kCount = sizeof(R) / sizeof(T);
  T t[kCount];
  memcpy(t, &x, sizeof x);
  for (int i = 0; i < kCount; ++i)
    if ((mask >> i & 1u) != 0) memcpy(static_cast<T*>(p) + i, &t[i], sizeof(T));
}

// ---- Conversions between widths.
LF_EMU __m512i widen_u8(__m128i x) {
  Z z;
  z.i8[0] = _mm256_cvtepu8_epi32(x);
  z.i8[1] = _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(x, x));
  return z.i;
}
LF_EMU __m512i widen_u16(__m256i x) {
  Z z;
  z.i8[0] = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(x));
  z.i8[1] = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x, 1));
  return z.i;
}
LF_EMU __m128i narrow_u8(__m512i x) {
  const Z z = of(x);
  uint8_t t[16];
  for (int i = 0; i < 16; ++i) t[i] = static_cast<uint8_t>(z.u32[i]);
  __m128i r;
  memcpy(&r, t, sizeof r);
  return r;
}
LF_EMU __m256i narrow_u16(__m512i x) {
  const Z z = of(x);
  uint16_t t[16];
  for (int i = 0; i < 16; ++i) t[i] = static_cast<uint16_t>(z.u32[i]);
  __m256i r;
  memcpy(&r, t, sizeof r);
  return r;
}
LF_EMU __m512 widen_half(__m256i x) {
  Z z;
  z.f8[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(x));
  z.f8[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1));
  return z.f;
}
LF_EMU __m512d widen_f32(__m256 x) {
  Z z;
  z.d4[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
  z.d4[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
  return z.d;
}

// ---- a > b ? a : b, the second operand when either is NaN.
LF_EMU __m512 max_f32(__m512 a, __m512 b) {
  const Z x = of(a), y = of(b);
  Z r;
  for (int i = 0; i < 2; ++i) r.f8[i] = _mm256_max_ps(x.f8[i], y.f8[i]);
  return r.f;
}
LF_EMU __m512 min_f32(__m512 a, __m512 b) {
  const Z x = of(a), y = of(b);
  Z r;
  for (int i = 0; i < 2; ++i) r.f8[i] = _mm256_min_ps(x.f8[i], y.f8[i]);
  return r.f;
}
LF_EMU __m512 sqrt_f32(__m512 a) {
  const Z x = of(a);
  Z r;
  for (int i = 0; i < 2; ++i) r.f8[i] = _mm256_sqrt_ps(x.f8[i]);
  return r.f;
}

// x * 2^floor(k), one rounding.
LF_EMU __m512 scalef_f32(__m512 x, __m512 k) {
  Z z = of(x);
  const Z e = of(k);
  for (int i = 0; i < 16; ++i) {
    const float step = floorf(e.f32[i]);
    if (step != step) {
      z.f32[i] = step;
    } else {
      z.f32[i] = scalbnf(z.f32[i], static_cast<int>(step < -600.0f  ? -600.0f
                                                    : step > 600.0f ? 600.0f
                                                                    : step));
    }
  }
  return z.f;
}

// ---- vdpbf16ps: the odd element's product, then the even one's, each added with one rounding;
// subnormal operands, accumulators and results are zeros of their sign.
LF_EMU __m256 flush(__m256 x) {
  const __m256 sign = _mm256_and_ps(x, _mm256_set1_ps(-0.0f));
  const __m256i exponent = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7F800000));
  const __m256 tiny = _mm256_castsi256_ps(_mm256_cmpeq_epi32(exponent, _mm256_setzero_si256()));
  return _mm256_blendv_ps(x, sign, tiny);
}
LF_EMU __m512 dot_bf16(__m512 sum, __m512i a, __m512i b) {
  const Z x = of(a), y = of(b), s = of(sum);
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xFFFF0000u));
  Z r;
  for (int i = 0; i < 2; ++i) {
    const __m256 x_odd = flush(_mm256_castsi256_ps(_mm256_and_si256(x.i8[i], upper)));
    const __m256 y_odd = flush(_mm256_castsi256_ps(_mm256_and_si256(y.i8[i], upper)));
    const __m256 x_even = flush(_mm256_castsi256_ps(_mm256_slli_epi32(x.i8[i], 16)));
    const __m256 y_even = flush(_mm256_castsi256_ps(_mm256_slli_epi32(y.i8[i], 16)));
    const __m256 t = flush(_mm256_fmadd_ps(x_odd, y_odd, flush(s.f8[i])));
    r.f8[i] = flush(_mm256_fmadd_ps(x_even, y_even, t));
  }
  return r.f;
}

#undef LF_EMU

}  // namespace
}  // namespace lf_emu

#undef _mm512_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#undef _mm512_maskz_loadu_epi32
#undef _mm512_mask_storeu_epi32
#undef _mm512_maskz_loadu_epi16
#undef _mm512_mask_storeu_epi16
#undef _mm512_maskz_loadu_epi8
#undef _mm512_mask_storeu_epi8
#undef _mm256_maskz_loadu_epi16
#undef _mm256_mask_storeu_epi16
#undef _mm_maskz_loadu_epi8
#undef _mm_mask_storeu_epi8
#define _mm512_maskz_loadu_ps(k, p) lf_emu::masked_load<__m512, uint32_t>(k, p)
#define _mm512_mask_storeu_ps(p, k, x) lf_emu::masked_store<uint32_t, __m512>(p, k, x)
#define _mm512_maskz_loadu_epi32(k, p) lf_emu::masked_load<__m512i, uint32_t>(k, p)
#define _mm512_mask_storeu_epi32(p, k, x) lf_emu::masked_store<uint32_t, __m512i>(p, k, x)
#define _mm512_maskz_loadu_epi16(k, p) lf_emu::masked_load<__m512i, uint16_t>(k, p)
#define _mm512_mask_storeu_epi16(p, k, x) lf_emu::masked_store<uint16_t, __m512i>(p, k, x)
#define _mm512_maskz_loadu_epi8(k, p) lf_emu::masked_load<__m512i, uint8_t>(k, p)
#define _mm512_mask_storeu_epi8(p, k, x) lf_emu::masked_store<uint8_t, __m512i>(p, k, x)
#define _mm256_maskz_loadu_epi16(k, p) lf_emu::masked_load<__m256i, uint16_t>(k, p)
#define _mm256_mask_storeu_epi16(p, k, x) lf_emu::masked_store<uint16_t, __m256i>(p, k, x)
#define _mm_maskz_loadu_epi8(k, p) lf_emu::masked_load<__m128i, uint8_t>(k, p)
#define _mm_mask_storeu_epi8(p, k, x) lf_emu::masked_store<uint8_t, __m128i>(p, k, x)

#undef _mm512_cvtepu8_epi32
#undef _mm512_cvtepu16_epi32
#undef _mm512_cvtepi32_epi8
#undef _mm512_cvtepi32_epi16
#undef _mm512_cvtph_ps
#undef _mm512_cvtps_pd
#define _mm512_cvtepu8_epi32(x) lf_emu::widen_u8(x)
#define _mm512_cvtepu16_epi32(x) lf_emu::widen_u16(x)
#define _mm512_cvtepi32_epi8(x) lf_emu::narrow_u8(x)
#define _mm512_cvtepi32_epi16(x) lf_emu::narrow_u16(x)
#define _mm512_cvtph_ps(x) lf_emu::widen_half(x)
#define _mm512_cvtps_pd(x) lf_emu::widen_f32(x)

#undef _mm512_maskz_srli_epi32
#define _mm512_maskz_srli_epi32(k, x, n) _mm512_maskz_mov_epi32(k, _mm512_srli_epi32(x, n))

#undef _mm512_madd_epi16
#define _mm512_madd_epi16(a, b) lf_emu::multiply_add_words(a, b)
#undef _mm512_cmplt_epu32_mask
#undef _mm512_testn_epi32_mask
#define _mm512_cmplt_epu32_mask(a, b) lf_emu::less_u32(a, b)
#define _mm512_testn_epi32_mask(a, b) lf_emu::no_common_bit_u32(a, b)

#undef _mm512_max_ps
#undef _mm512_min_ps
#undef _mm512_sqrt_ps
#undef _mm512_scalef_ps
#undef _mm512_dpbf16_ps
#define _mm512_max_ps(a, b) lf_emu::max_f32(a, b)
#define _mm512_min_ps(a, b) lf_emu::min_f32(a, b)
#define _mm512_sqrt_ps(a) lf_emu::sqrt_f32(a)
#define _mm512_scalef_ps(x, k) lf_emu::scalef_f32(x, k)
#define _mm512_dpbf16_ps(sum, a, b) lf_emu::dot_bf16(sum, (__m512i)(a), (__m512i)(b))

#pragma GCC diagnostic pop
