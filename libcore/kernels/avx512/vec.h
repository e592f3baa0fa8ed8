// V (see scalar/vec.h, its specification) on one zmm register: AVX-512 F, BW, VL, DQ.
#pragma once

#include <stdint.h>

#include "kernels/avx512/intrinsics.h"
#include "kernels/types.h"

namespace loongforge::kernels::avx512 {
namespace {

struct V {
  static constexpr int kLanes = 16;
  static constexpr int kTogether = 4;
  static constexpr bool kMergesBits = true;
  __m512 v;

  static LF_INLINE V of(__m512 v) { return V{v}; }
  static LF_INLINE V of_int(__m512i v) { return V{_mm512_castsi512_ps(v)}; }
  LF_INLINE __m512i as_int() const { return _mm512_castps_si512(v); }
  static LF_INLINE __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1u); }

  static LF_INLINE V zero() { return V{_mm512_setzero_ps()}; }
  static LF_INLINE V set1(float x) { return V{_mm512_set1_ps(x)}; }
  static LF_INLINE V set1_bits(uint32_t u) {
    return of_int(_mm512_set1_epi32(static_cast<int>(u)));
  }

  static LF_INLINE V load(const float* p) { return V{_mm512_loadu_ps(p)}; }
  static LF_INLINE V load_part(const float* p, int n) {
    return V{_mm512_maskz_loadu_ps(first(n), p)};
  }
  LF_INLINE void store(float* p) const { _mm512_storeu_ps(p, v); }
  LF_INLINE void store_part(float* p, int n) const { _mm512_mask_storeu_ps(p, first(n), v); }

  static LF_INLINE V load(const Bf16* p) {
    return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static LF_INLINE V load_part(const Bf16* p, int n) {
    return widen(_mm256_maskz_loadu_epi16(first(n), p));
  }
  LF_INLINE void store(Bf16* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), operands());
  }
  LF_INLINE void store_part(Bf16* p, int n) const {
    _mm256_mask_storeu_epi16(p, first(n), operands());
  }
  LF_INLINE void store_high(Bf16* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), upper_halves());
  }
  LF_INLINE void store_high_part(Bf16* p, int n) const {
    _mm256_mask_storeu_epi16(p, first(n), upper_halves());
  }
  static LF_INLINE V load_f16(const uint16_t* p) {
    return V{_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static LF_INLINE V load_f16_part(const uint16_t* p, int n) {
    return V{_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), p))};
  }
  LF_INLINE V to_bf16() const {
    const Rounded r = round_operands();
    return of_int(
        _mm512_maskz_and_epi32(r.kept, r.words, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u))));
  }

  friend LF_INLINE V operator+(V a, V b) { return V{_mm512_add_ps(a.v, b.v)}; }
  friend LF_INLINE V operator-(V a, V b) { return V{_mm512_sub_ps(a.v, b.v)}; }
  friend LF_INLINE V operator*(V a, V b) { return V{_mm512_mul_ps(a.v, b.v)}; }
  friend LF_INLINE V operator/(V a, V b) { return V{_mm512_div_ps(a.v, b.v)}; }
  static LF_INLINE V fma(V a, V b, V c) { return V{_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  static LF_INLINE V sqrt(V a) { return V{_mm512_sqrt_ps(a.v)}; }
  static LF_INLINE V abs(V a) { return bit_and(a, set1_bits(0x7FFFFFFFu)); }
  static LF_INLINE V max(V a, V b) { return V{_mm512_max_ps(a.v, b.v)}; }
  static LF_INLINE V min(V a, V b) { return V{_mm512_min_ps(a.v, b.v)}; }
  static LF_INLINE V select_lt(V a, V b, V x, V y) {
    return V{_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), y.v, x.v)};
  }
  static LF_INLINE V select_nan(V a, V x, V y) {
    return V{_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q), y.v, x.v)};
  }
  static LF_INLINE V select_first(int n, V a, V b) {
    return V{_mm512_mask_blend_ps(first(n), b.v, a.v)};
  }
  static LF_INLINE V select_bits(uint32_t mask, V a, V b) {
    return V{_mm512_mask_blend_ps(static_cast<__mmask16>(mask), b.v, a.v)};
  }
  static LF_INLINE V scale2(V x, V k) { return V{_mm512_scalef_ps(x.v, k.v)}; }
  static LF_INLINE V round_nearest(V a) {
    const V magic = set1(12582912.0f);
    return (a + magic) - magic;
  }

  static LF_INLINE V bit_and(V a, V b) { return of_int(_mm512_and_si512(a.as_int(), b.as_int())); }
  static LF_INLINE V bit_or(V a, V b) { return of_int(_mm512_or_si512(a.as_int(), b.as_int())); }
  static LF_INLINE V merge_bits(V mask, V a, V b) {
    return of_int(_mm512_ternarylogic_epi32(mask.as_int(), a.as_int(), b.as_int(), 0xEA));
  }
  static LF_INLINE V add_int(V a, V b) { return of_int(_mm512_add_epi32(a.as_int(), b.as_int())); }
  static LF_INLINE V sub_int(V a, V b) { return of_int(_mm512_sub_epi32(a.as_int(), b.as_int())); }
  static LF_INLINE V max_int(V a, V b) { return of_int(_mm512_max_epi32(a.as_int(), b.as_int())); }
  template <int N>
  static LF_INLINE V shift_left(V a) {
    return of_int(_mm512_slli_epi32(a.as_int(), N));
  }
  template <int N>
  static LF_INLINE V shift_right(V a) {
    return of_int(_mm512_srli_epi32(a.as_int(), N));
  }
  static LF_INLINE V load_bytes(const uint8_t* p) {
    return of_int(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static LF_INLINE V load_bytes_part(const uint8_t* p, int n) {
    return of_int(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first(n), p)));
  }
  LF_INLINE void store_bytes(uint8_t* p) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(as_int()));
  }
  LF_INLINE void store_bytes_part(uint8_t* p, int n) const {
    _mm_mask_storeu_epi8(p, first(n), _mm512_cvtepi32_epi8(as_int()));
  }
  template <int N>
  static LF_INLINE V fold_halves(V a) {
    return of_int(_mm512_madd_epi16(a.as_int(), _mm512_set1_epi32((1 << 16) + (1 << N))));
  }
  // Packing works within 128 bits and leaves quarters of a, b, c, d beside each other.
  template <int N, class X>
  static LF_INLINE V store_codes(V a, V b, V c, V d, V /*below*/, const X* x, uint8_t* p) {
    const __m512i low = _mm512_packus_epi32(a.as_int(), b.as_int());
    const __m512i high = _mm512_packus_epi32(c.as_int(), d.as_int());
    const __m512i codes =
        _mm512_packus_epi16(_mm512_srli_epi16(low, N), _mm512_srli_epi16(high, N));
    _mm512_storeu_si512(p, in_order(codes, x));
    return of_int(codes);
  }
  static LF_INLINE V min_bytes(V a, V b) { return of_int(_mm512_min_epu8(a.as_int(), b.as_int())); }
  LF_INLINE bool has_zero_byte() const {
    return _mm512_cmpeq_epi8_mask(as_int(), _mm512_setzero_si512()) != 0;
  }
  static LF_INLINE V count_lt(V count, V a, V b) {
    const __m512i c = count.as_int();
    return of_int(_mm512_mask_add_epi32(c, _mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), c,
                                        _mm512_set1_epi32(1)));
  }
  static LF_INLINE V count_nan(V count, V a) {
    const __m512i c = count.as_int();
    return of_int(_mm512_mask_add_epi32(c, _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q), c,
                                        _mm512_set1_epi32(1)));
  }
  LF_INLINE uint32_t reduce_add_int() const {
    const __m256i a =
        _mm256_add_epi32(_mm512_castsi512_si256(as_int()), _mm512_extracti64x4_epi64(as_int(), 1));
    __m128i x = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    x = _mm_add_epi32(x, _mm_unpackhi_epi64(x, x));
    x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(x));
  }
  LF_INLINE uint32_t reduce_max_int() const {
    const __m256i a =
        _mm256_max_epi32(_mm512_castsi512_si256(as_int()), _mm512_extracti64x4_epi64(as_int(), 1));
    __m128i x = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    x = _mm_max_epi32(x, _mm_unpackhi_epi64(x, x));
    x = _mm_max_epi32(x, _mm_shuffle_epi32(x, 1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(x));
  }

  LF_INLINE float reduce_add() const {
    const __m256 a = _mm256_add_ps(low_half(), high_half());
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
  }
  LF_INLINE float reduce_max() const {
    const __m256 a = _mm256_max_ps(low_half(), high_half());
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
  }
  LF_INLINE __m256 low_half() const { return _mm512_castps512_ps256(v); }
  LF_INLINE __m256 high_half() const {
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
  }

  static LF_INLINE uint16_t round_operand(uint32_t u) { return kernels::round_operand(u); }

 private:
  static LF_INLINE __m512i quarters_in_order(__m512i packed) {
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), packed);
  }
  static LF_INLINE __m512i with_signs(__m512i codes, __m512i signs) {  // codes | signs & 0x80
    return _mm512_ternarylogic_epi32(codes, signs, _mm512_set1_epi8(-128), 0xF8);
  }
  static LF_INLINE __m512i in_order(__m512i codes, const float* x) {
    // Saturation keeps the sign.
    const __m512i low = _mm512_packs_epi32(_mm512_loadu_si512(x), _mm512_loadu_si512(x + 16));
    const __m512i high = _mm512_packs_epi32(_mm512_loadu_si512(x + 32), _mm512_loadu_si512(x + 48));
    return quarters_in_order(with_signs(codes, _mm512_packs_epi16(low, high)));
  }
  static LF_INLINE __m512i in_order(__m512i codes, const Bf16* x) {
    const __m512i signs = _mm512_packs_epi16(_mm512_loadu_si512(x), _mm512_loadu_si512(x + 32));
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    return with_signs(quarters_in_order(codes), _mm512_permutexvar_epi64(order, signs));
  }
  static LF_INLINE V widen(__m256i x) {
    return of_int(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
  }
  LF_INLINE __m256i upper_halves() const {
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(as_int(), 16));
  }
  struct Rounded {
    __m512i words;   // the upper halves are the operands
    __mmask16 kept;  // lanes of at least 2^-55, and NaN
  };
  LF_INLINE Rounded round_operands() const {
    const __m512i u = as_int();
    const __m512i magnitude = _mm512_and_si512(u, _mm512_set1_epi32(0x7FFFFFFF));
    const __mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x00010000));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    __m512i r = _mm512_add_epi32(u, _mm512_set1_epi32(0x7FFF));
    r = _mm512_mask_add_epi32(r, odd, r, _mm512_set1_epi32(1));
    r = _mm512_mask_or_epi32(r, nan, u, _mm512_set1_epi32(0x00400000));
    return {r, _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(((127 - 55) << 23) - 1))};
  }
  LF_INLINE __m256i operands() const {
    const Rounded r = round_operands();
    return _mm512_cvtepi32_epi16(_mm512_maskz_srli_epi32(r.kept, r.words, 16));
  }
};

struct D {
  __m512d d[2];
  static LF_INLINE D zero() { return D{{_mm512_setzero_pd(), _mm512_setzero_pd()}}; }
  LF_INLINE void add(V x) {
    d[0] = _mm512_add_pd(d[0], _mm512_cvtps_pd(x.low_half()));
    d[1] = _mm512_add_pd(d[1], _mm512_cvtps_pd(x.high_half()));
  }
  LF_INLINE void add_square(V x) {
    const __m512d a = _mm512_cvtps_pd(x.low_half());
    const __m512d b = _mm512_cvtps_pd(x.high_half());
    // The squares are exact, so fma equals multiply, then add.
    d[0] = _mm512_fmadd_pd(a, a, d[0]);
    d[1] = _mm512_fmadd_pd(b, b, d[1]);
  }
  LF_INLINE double reduce_add() const {
    const __m512d s = _mm512_add_pd(d[0], d[1]);
    const __m256d a = _mm256_add_pd(_mm512_castpd512_pd256(s), _mm512_extractf64x4_pd(s, 1));
    const __m128d x = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x)));
  }
};

}  // namespace
}  // namespace loongforge::kernels::avx512
