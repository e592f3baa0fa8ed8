// What the AVX2 ISA (with FMA and F16C) gives to the generic gemm and attention: see
// generic/tile.md. 6 rows x 16 columns: 12 accumulators, 2 registers of B, a broadcast of A.
#pragma once

#include "kernels/avx2/vec.h"
#include "kernels/generic/panel_tile.h"
#include "kernels/nf4_format.h"

namespace loongforge::kernels::avx2 {
namespace {

// One register of 8 fp32.
struct R {
  static constexpr int kLanes = 8;
  __m256 v;

  static LF_INLINE R of_int(__m256i x) { return R{_mm256_castsi256_ps(x)}; }
  static LF_INLINE R zero() { return R{_mm256_setzero_ps()}; }
  static LF_INLINE R set1(float x) { return R{_mm256_set1_ps(x)}; }
  static LF_INLINE R set1_bits(uint32_t u) {
    return of_int(_mm256_set1_epi32(static_cast<int>(u)));
  }
  static LF_INLINE R broadcast(const float* p) { return R{_mm256_broadcast_ss(p)}; }
  static LF_INLINE R load(const float* p) { return R{_mm256_loadu_ps(p)}; }
  static LF_INLINE R load(const Bf16* p) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return of_int(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  template <class T>
  static LF_INLINE R load_part(const T* p, int n) {
    return load_part_by_copy<R>(p, n);
  }
  LF_INLINE void store(float* p) const { _mm256_storeu_ps(p, v); }
  LF_INLINE void store_part(float* p, int n) const { _mm256_maskstore_ps(p, V::first_lo(n), v); }

  LF_INLINE R to_bf16() const { return R{V::of(v, v).to_bf16().lo}; }
  LF_INLINE R flushed() const {
    const __m256i magnitude =
        _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7FFFFFFF));
    const __m256i kept = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(((127 - 55) << 23) - 1));
    return R{_mm256_and_ps(v, _mm256_castsi256_ps(kept))};
  }
  friend LF_INLINE R operator*(R a, R b) { return R{_mm256_mul_ps(a.v, b.v)}; }
  static LF_INLINE R bit_and(R a, R b) { return R{_mm256_and_ps(a.v, b.v)}; }
  static LF_INLINE R fma(R a, R b, R c) { return R{_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  // The same as asm, so that each sum stays in its register: g++ 12 rotates them through the
  // factors' registers otherwise.
  static LF_INLINE R mul_add(R x, R y, R sum) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum.v) : "x"(x.v), "x"(y.v));
    return sum;
  }

  static LF_INLINE void transpose(R r[8]) {
    __m256 t[8], u[8];
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
      t[2 * i] = _mm256_unpacklo_ps(r[2 * i].v, r[2 * i + 1].v);
      t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i].v, r[2 * i + 1].v);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 2; ++i) {
      u[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
      u[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xEE);
      u[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
      u[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xEE);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
      r[i].v = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
      r[i + 4].v = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
  }
};

// 16 FP8 codes.
using Codes = __m128i;
LF_INLINE Codes load_codes_at(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

// A code moved to the top of a 16-bit word and, for E4M3-LA, its exponent to where fp16's low
// exponent bits are, is the fp16 of value * 2^-3 (E5M2: of the value itself), subnormals included.
// The upper eight go through memory: taking them out of the register costs a shuffle and their
// conversion another, and shuffles are what one port alone does on most CPUs.
template <bool kE4M3, bool kSmall>
struct Fp8Decoder {
  struct alignas(32) Halves {
    __m128i lower, upper;
  };
  __m256 scale;
  Halves own;
  Halves* through = &own;

  explicit LF_INLINE Fp8Decoder(int exp) : scale(power_of_two(kE4M3 ? exp + 3 : exp)) {}
  // A copy uses the first one's, which a loop then reaches by a register. REQUIRES that it lives.
  LF_INLINE Fp8Decoder(const Fp8Decoder& first) : scale(first.scale), through(first.through) {}

  LF_INLINE V operator()(Codes codes) const {
    __m256i halves = _mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), kE4M3 ? 7 : 8);
    // The extended sign reached fp16's top exponent bit.
    if constexpr (kE4M3)
      halves = _mm256_and_si256(halves, _mm256_set1_epi16(static_cast<int16_t>(0xBFFF)));
    const __m256 lo = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
    __m256 hi;
    __asm__("vmovdqa %1, %0" : "=m"(*through) : "x"(halves));
    __asm__("vcvtph2ps %1, %0" : "=x"(hi) : "m"(through->upper));
    return V::of(flush(_mm256_mul_ps(lo, scale)), flush(_mm256_mul_ps(hi, scale)));
  }

 private:
  static LF_INLINE __m256 power_of_two(int exp) {
    return _mm256_castsi256_ps(_mm256_set1_epi32((exp + 127) << 23));
  }
  static LF_INLINE __m256 flush(__m256 x) {
    if constexpr (!kSmall) return x;
    const __m256 sign = _mm256_set1_ps(-0.0f);
    const __m256 kept = _mm256_cmp_ps(_mm256_andnot_ps(sign, x), power_of_two(-55), _CMP_GE_OQ);
    return _mm256_and_ps(x, _mm256_or_ps(kept, sign));
  }
};

struct Nf4Table {
  using Words = __m256i;
  __m256 low = _mm256_load_ps(kNf4Values), high = _mm256_load_ps(kNf4Values + 8);

  static LF_INLINE Words load(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static LF_INLINE Words next(Words words) { return _mm256_srli_epi32(words, 4); }

  template <int kNibble>
  LF_INLINE R at(Words words) const {
    const __m256i index = kNibble == 0 ? words : _mm256_srli_epi32(words, 4 * kNibble);
    const __m256i top = kNibble == 7 ? words : _mm256_slli_epi32(words, 28 - 4 * kNibble);
    return R{look_up(index, top)};
  }
  LF_INLINE V row(uint32_t first, uint32_t second) const {
    return V::of(row8(first), row8(second));
  }

 private:
  LF_INLINE __m256 row8(uint32_t word) const {
    const __m256i shifts = _mm256_setr_epi32(4, 0, 12, 8, 20, 16, 28, 24);
    const __m256i tops = _mm256_sub_epi32(_mm256_set1_epi32(28), shifts);
    const __m256i both = _mm256_set1_epi32(static_cast<int>(word));
    return look_up(_mm256_srlv_epi32(both, shifts), _mm256_sllv_epi32(both, tops));
  }
  // Of the words' lowest nibbles, whose bit 3 also stands in the sign of `top`.
  LF_INLINE __m256 look_up(__m256i words, __m256i top) const {
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, words),
                            _mm256_permutevar8x32_ps(high, words), _mm256_castsi256_ps(top));
  }
};

struct Ops {
  using V = avx2::V;
  using R = avx2::R;
  using Codes = avx2::Codes;
  template <bool kE4M3, bool kSmall>
  using Fp8 = Fp8Decoder<kE4M3, kSmall>;
  using Nf4 = Nf4Table;
  template <bool kRounds>
  using Tiles = RegisterTiles<FmaStep<Ops>, 1>;

  static constexpr int kMr = 6, kNr = 16;
  // A panel of B takes 24 KiB of the first cache, A is kept within the second.
  static constexpr int64_t kABytes = 512 << 10;
  static constexpr int64_t kKBlock = 384, kShortKBlock = 256;
  static constexpr int kStrips = 8, kQueries = 96, kKeys = 128;  // blocks of attention
  static constexpr int64_t kRowsAhead = 64;   // whose lines are asked for in advance
  static constexpr int64_t kFewAhead = 4096;  // bytes of weight, likewise

  template <int kPart>
  static LF_INLINE R part(const V& x) {
    return R{kPart == 0 ? x.lo : x.hi};
  }
  static LF_INLINE Codes load_codes(const uint8_t* p) { return load_codes_at(p); }
  static LF_INLINE void transpose_codes(const uint8_t* src, int64_t stride, Codes out[16]) {
    __m128i x[16], y[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) x[i] = load_codes(src + (i ^ 1) * stride);
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
};

}  // namespace
}  // namespace loongforge::kernels::avx2
