// V (see scalar/vec.h, its specification) on two ymm registers: AVX2, FMA, F16C.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#include "kernels/types.h"

namespace loongforge::kernels::avx2 {
namespace {

// -1 in the first 16 words, then 0: a mask for the first n of 16 lanes starts at kFirst + 16 - n.
alignas(64) constexpr int32_t kFirst[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                            -1, -1, -1, -1, -1, 0,  0,  0,  0,  0,  0,
                                            0,  0,  0,  0,  0,  0,  0,  0,  0,  0};

struct V {
  static constexpr int kLanes = 16;
  static constexpr int kTogether = 1;
  static constexpr bool kMergesBits = false;
  __m256 lo, hi;  // lanes 0 .. 7, 8 .. 15

  static LF_INLINE V of(__m256 lo, __m256 hi) { return V{lo, hi}; }
  static LF_INLINE V of_int(__m256i lo, __m256i hi) {
    return V{_mm256_castsi256_ps(lo), _mm256_castsi256_ps(hi)};
  }
  LF_INLINE __m256i lo_int() const { return _mm256_castps_si256(lo); }
  LF_INLINE __m256i hi_int() const { return _mm256_castps_si256(hi); }
  static LF_INLINE __m256i first_lo(int n) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kFirst + 16 - n));
  }
  static LF_INLINE __m256i first_hi(int n) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kFirst + 24 - n));
  }

  static LF_INLINE V zero() { return V{_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static LF_INLINE V set1(float x) { return V{_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static LF_INLINE V set1_bits(uint32_t u) {
    const __m256i x = _mm256_set1_epi32(static_cast<int>(u));
    return of_int(x, x);
  }

  static LF_INLINE V load(const float* p) { return V{_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static LF_INLINE V load_part(const float* p, int n) {
    return V{_mm256_maskload_ps(p, first_lo(n)), _mm256_maskload_ps(p + 8, first_hi(n))};
  }
  LF_INLINE void store(float* p) const {
    _mm256_storeu_ps(p, lo);
    _mm256_storeu_ps(p + 8, hi);
  }
  LF_INLINE void store_part(float* p, int n) const {
    _mm256_maskstore_ps(p, first_lo(n), lo);
    _mm256_maskstore_ps(p + 8, first_hi(n), hi);
  }

  static LF_INLINE V load(const Bf16* p) {
    const __m128i* q = reinterpret_cast<const __m128i*>(p);
    return of_int(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(q)), 16),
                  _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(q + 1)), 16));
  }
  static LF_INLINE V load_part(const Bf16* p, int n) {
    alignas(32) Bf16 t[16] = {};
    for (int i = 0; i < n; ++i) t[i] = p[i];
    return load(t);
  }
  LF_INLINE void store(Bf16* p) const { to_bf16().store_high(p); }
  LF_INLINE void store_part(Bf16* p, int n) const { to_bf16().store_high_part(p, n); }
  LF_INLINE void store_high(Bf16* p) const {
    // Packing works within 128-bit halves: put the four quarters in order afterwards.
    const __m256i packed =
        _mm256_packus_epi32(_mm256_srli_epi32(lo_int(), 16), _mm256_srli_epi32(hi_int(), 16));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xD8));
  }
  LF_INLINE void store_high_part(Bf16* p, int n) const {
    alignas(32) Bf16 t[16];
    store_high(t);
    for (int i = 0; i < n; ++i) p[i] = t[i];
  }
  static LF_INLINE V load_f16(const uint16_t* p) {
    const __m128i* q = reinterpret_cast<const __m128i*>(p);
    return V{_mm256_cvtph_ps(_mm_loadu_si128(q)), _mm256_cvtph_ps(_mm_loadu_si128(q + 1))};
  }
  static LF_INLINE V load_f16_part(const uint16_t* p, int n) {
    alignas(32) uint16_t t[16] = {};
    for (int i = 0; i < n; ++i) t[i] = p[i];
    return load_f16(t);
  }
  LF_INLINE V to_bf16() const { return of_int(round_operands(lo_int()), round_operands(hi_int())); }

  friend LF_INLINE V operator+(V a, V b) {
    return V{_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
  }
  friend LF_INLINE V operator-(V a, V b) {
    return V{_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
  }
  friend LF_INLINE V operator*(V a, V b) {
    return V{_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
  }
  friend LF_INLINE V operator/(V a, V b) {
    return V{_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
  }
  static LF_INLINE V fma(V a, V b, V c) {
    return V{_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
  }
  static LF_INLINE V sqrt(V a) { return V{_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
  static LF_INLINE V abs(V a) { return bit_and(a, set1_bits(0x7FFFFFFFu)); }
  static LF_INLINE V max(V a, V b) {
    return V{_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
  }
  static LF_INLINE V min(V a, V b) {
    return V{_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
  }
  static LF_INLINE V select_lt(V a, V b, V x, V y) {
    return V{_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
             _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
  }
  static LF_INLINE V select_nan(V a, V x, V y) {
    return V{_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, a.lo, _CMP_UNORD_Q)),
             _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, a.hi, _CMP_UNORD_Q))};
  }
  static LF_INLINE V select_first(int n, V a, V b) {
    return V{_mm256_blendv_ps(b.lo, a.lo, _mm256_castsi256_ps(first_lo(n))),
             _mm256_blendv_ps(b.hi, a.hi, _mm256_castsi256_ps(first_hi(n)))};
  }
  static LF_INLINE V select_bits(uint32_t mask, V a, V b) {
    const __m256i word = _mm256_set1_epi32(static_cast<int>(mask));
    // Bit i goes to the sign of lane i, which is all that blendv looks at.
    const __m256i lo_sign =
        _mm256_sllv_epi32(word, _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24));
    const __m256i hi_sign =
        _mm256_sllv_epi32(word, _mm256_setr_epi32(23, 22, 21, 20, 19, 18, 17, 16));
    return V{_mm256_blendv_ps(b.lo, a.lo, _mm256_castsi256_ps(lo_sign)),
             _mm256_blendv_ps(b.hi, a.hi, _mm256_castsi256_ps(hi_sign))};
  }
  static LF_INLINE V scale2(V x, V k) {
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i lo = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvttps_epi32(k.lo), bias), 23);
    const __m256i hi = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvttps_epi32(k.hi), bias), 23);
    return x * of_int(lo, hi);
  }
  static LF_INLINE V round_nearest(V a) {
    const V magic = set1(12582912.0f);
    return (a + magic) - magic;
  }

  static LF_INLINE V bit_and(V a, V b) {
    return V{_mm256_and_ps(a.lo, b.lo), _mm256_and_ps(a.hi, b.hi)};
  }
  static LF_INLINE V bit_or(V a, V b) {
    return V{_mm256_or_ps(a.lo, b.lo), _mm256_or_ps(a.hi, b.hi)};
  }
  static LF_INLINE V merge_bits(V mask, V a, V b) { return bit_or(bit_and(a, mask), b); }
  static LF_INLINE V add_int(V a, V b) {
    return of_int(_mm256_add_epi32(a.lo_int(), b.lo_int()),
                  _mm256_add_epi32(a.hi_int(), b.hi_int()));
  }
  static LF_INLINE V sub_int(V a, V b) {
    return of_int(_mm256_sub_epi32(a.lo_int(), b.lo_int()),
                  _mm256_sub_epi32(a.hi_int(), b.hi_int()));
  }
  static LF_INLINE V max_int(V a, V b) {
    return of_int(_mm256_max_epi32(a.lo_int(), b.lo_int()),
                  _mm256_max_epi32(a.hi_int(), b.hi_int()));
  }
  template <int N>
  static LF_INLINE V shift_left(V a) {
    return of_int(_mm256_slli_epi32(a.lo_int(), N), _mm256_slli_epi32(a.hi_int(), N));
  }
  template <int N>
  static LF_INLINE V shift_right(V a) {
    return of_int(_mm256_srli_epi32(a.lo_int(), N), _mm256_srli_epi32(a.hi_int(), N));
  }
  static LF_INLINE V load_bytes(const uint8_t* p) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return of_int(_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(x, x)));
  }
  static LF_INLINE V load_bytes_part(const uint8_t* p, int n) {
    alignas(16) uint8_t t[16] = {};
    for (int i = 0; i < n; ++i) t[i] = p[i];
    return load_bytes(t);
  }
  LF_INLINE void store_bytes(uint8_t* p) const {
    const __m256i low = _mm256_set1_epi32(0xFF);
    const __m256i words =
        _mm256_packus_epi32(_mm256_and_si256(lo_int(), low), _mm256_and_si256(hi_int(), low));
    const __m256i ordered = _mm256_permute4x64_epi64(words, 0xD8);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1)));
  }
  LF_INLINE void store_bytes_part(uint8_t* p, int n) const {
    alignas(16) uint8_t t[16];
    store_bytes(t);
    for (int i = 0; i < n; ++i) p[i] = t[i];
  }
  template <int N>
  static LF_INLINE V fold_halves(V a) {
    const __m256i weights = _mm256_set1_epi32((1 << 16) + (1 << N));
    return of_int(_mm256_madd_epi16(a.lo_int(), weights), _mm256_madd_epi16(a.hi_int(), weights));
  }
  template <int N, class X>
  static LF_INLINE V store_codes(V a, V b, V c, V d, V below, const X* x, uint8_t* p) {
    const __m256i low = narrow_words<N>(a, b, below.lo_int());
    const __m256i high = narrow_words<N>(c, d, below.lo_int());
    __m256i* to = reinterpret_cast<__m256i*>(p);
    _mm256_storeu_si256(to, in_order(low, x));
    _mm256_storeu_si256(to + 1, in_order(high, x + 32));
    return of_int(low, high);
  }
  static LF_INLINE V min_bytes(V a, V b) {
    return of_int(_mm256_min_epu8(a.lo_int(), b.lo_int()), _mm256_min_epu8(a.hi_int(), b.hi_int()));
  }
  LF_INLINE bool has_zero_byte() const {
    const __m256i least = _mm256_min_epu8(lo_int(), hi_int());
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(least, _mm256_setzero_si256())) != 0;
  }
  static LF_INLINE V count_lt(V count, V a, V b) {  // a true comparison is the word -1
    return sub_int(count,
                   V{_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)});
  }
  static LF_INLINE V count_nan(V count, V a) {
    return sub_int(
        count, V{_mm256_cmp_ps(a.lo, a.lo, _CMP_UNORD_Q), _mm256_cmp_ps(a.hi, a.hi, _CMP_UNORD_Q)});
  }
  LF_INLINE uint32_t reduce_add_int() const {
    const __m256i a = _mm256_add_epi32(lo_int(), hi_int());
    __m128i x = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    x = _mm_add_epi32(x, _mm_unpackhi_epi64(x, x));
    x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(x));
  }
  LF_INLINE uint32_t reduce_max_int() const {
    const __m256i a = _mm256_max_epi32(lo_int(), hi_int());
    __m128i x = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    x = _mm_max_epi32(x, _mm_unpackhi_epi64(x, x));
    x = _mm_max_epi32(x, _mm_shuffle_epi32(x, 1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(x));
  }

  LF_INLINE float reduce_add() const {
    const __m256 a = _mm256_add_ps(lo, hi);
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
  }
  LF_INLINE float reduce_max() const {
    const __m256 a = _mm256_max_ps(lo, hi);
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
  }

  static LF_INLINE uint16_t round_operand(uint32_t u) { return kernels::round_operand(u); }

 private:
  // Packing works within 128 bits: it leaves the quarters of the four registers of a and b beside
  // each other.
  template <int N>
  static LF_INLINE __m256i narrow_words(V a, V b, __m256i base) {
    const __m256i low = _mm256_sub_epi16(_mm256_packus_epi32(a.lo_int(), a.hi_int()), base);
    const __m256i high = _mm256_sub_epi16(_mm256_packus_epi32(b.lo_int(), b.hi_int()), base);
    return _mm256_packus_epi16(_mm256_srli_epi16(low, N), _mm256_srli_epi16(high, N));
  }
  static LF_INLINE __m256i quarters_in_order(__m256i packed) {
    return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
  static LF_INLINE __m256i with_signs(__m256i codes, __m256i signs) {
    return _mm256_or_si256(codes, _mm256_and_si256(signs, _mm256_set1_epi8(-128)));
  }
  static LF_INLINE __m256i in_order(__m256i codes, const float* x) {
    // Saturation keeps the sign.
    const __m256i* q = reinterpret_cast<const __m256i*>(x);
    const __m256i low = _mm256_packs_epi32(_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1));
    const __m256i high = _mm256_packs_epi32(_mm256_loadu_si256(q + 2), _mm256_loadu_si256(q + 3));
    return quarters_in_order(with_signs(codes, _mm256_packs_epi16(low, high)));
  }
  static LF_INLINE __m256i in_order(__m256i codes, const Bf16* x) {
    const __m256i* q = reinterpret_cast<const __m256i*>(x);
    const __m256i signs = _mm256_packs_epi16(_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1));
    return with_signs(quarters_in_order(codes), _mm256_permute4x64_epi64(signs, 0xD8));
  }
  static LF_INLINE __m256i round_operands(__m256i u) {
    const __m256i magnitude = _mm256_and_si256(u, _mm256_set1_epi32(0x7FFFFFFF));
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7FFF)), odd);
    const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x00400000));
    const __m256i nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7F800000));
    const __m256i kept = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(((127 - 55) << 23) - 1));
    const __m256i r = _mm256_blendv_epi8(rounded, quiet, nan);
    return _mm256_and_si256(_mm256_and_si256(r, kept),
                            _mm256_set1_epi32(static_cast<int>(0xFFFF0000u)));
  }
};

struct D {
  __m256d d[4];
  static LF_INLINE D zero() {
    const __m256d z = _mm256_setzero_pd();
    return D{{z, z, z, z}};
  }
  LF_INLINE void add(V x) {
    d[0] = _mm256_add_pd(d[0], _mm256_cvtps_pd(_mm256_castps256_ps128(x.lo)));
    d[1] = _mm256_add_pd(d[1], _mm256_cvtps_pd(_mm256_extractf128_ps(x.lo, 1)));
    d[2] = _mm256_add_pd(d[2], _mm256_cvtps_pd(_mm256_castps256_ps128(x.hi)));
    d[3] = _mm256_add_pd(d[3], _mm256_cvtps_pd(_mm256_extractf128_ps(x.hi, 1)));
  }
  LF_INLINE void add_square(V x) {
    const __m256d a = _mm256_cvtps_pd(_mm256_castps256_ps128(x.lo));
    const __m256d b = _mm256_cvtps_pd(_mm256_extractf128_ps(x.lo, 1));
    const __m256d c = _mm256_cvtps_pd(_mm256_castps256_ps128(x.hi));
    const __m256d e = _mm256_cvtps_pd(_mm256_extractf128_ps(x.hi, 1));
    // The squares are exact, so fma equals multiply, then add.
    d[0] = _mm256_fmadd_pd(a, a, d[0]);
    d[1] = _mm256_fmadd_pd(b, b, d[1]);
    d[2] = _mm256_fmadd_pd(c, c, d[2]);
    d[3] = _mm256_fmadd_pd(e, e, d[3]);
  }
  LF_INLINE double reduce_add() const {
    const __m256d a = _mm256_add_pd(_mm256_add_pd(d[0], d[2]), _mm256_add_pd(d[1], d[3]));
    const __m128d x = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x)));
  }
};

}  // namespace
}  // namespace loongforge::kernels::avx2
