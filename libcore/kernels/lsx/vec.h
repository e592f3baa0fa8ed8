// V (see scalar/vec.h, its specification) on four LSX registers. There are no masks: what is
// shorter than 16 lanes goes through a buffer. LSX's fp maximum and minimum treat NaN otherwise
// than V, so both are a comparison and a choice.
#pragma once

#include <lsxintrin.h>
#include <stdint.h>

#include "kernels/types.h"

namespace loongforge::kernels::lsx {
namespace {

alignas(16) constexpr int32_t kLaneNumbers[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                  8, 9, 10, 11, 12, 13, 14, 15};

LF_INLINE __m128i ints(__m128 x) { return reinterpret_cast<__m128i>(x); }
LF_INLINE __m128 floats(__m128i x) { return reinterpret_cast<__m128>(x); }
LF_INLINE __m128i words(uint32_t u) { return __lsx_vreplgr2vr_w(static_cast<int>(u)); }
LF_INLINE __m128i load128(const void* p) { return __lsx_vld(p, 0); }
// mask lane by lane: all ones takes x, zero takes y.
LF_INLINE __m128 choose(__m128i mask, __m128 x, __m128 y) {
  return floats(__lsx_vbitsel_v(ints(y), ints(x), mask));
}

struct V {
  static constexpr int kLanes = 16;
  static constexpr int kTogether = 1;
  static constexpr bool kMergesBits = true;
  __m128 a, b, c, d;  // lanes 0 .. 3, 4 .. 7, 8 .. 11, 12 .. 15

  static LF_INLINE V all(__m128 x) { return V{x, x, x, x}; }
  static LF_INLINE V of_int(__m128i a, __m128i b, __m128i c, __m128i d) {
    return V{floats(a), floats(b), floats(c), floats(d)};
  }
  static LF_INLINE V zero() { return set1_bits(0); }
  static LF_INLINE V set1(float x) { return all(__m128{x, x, x, x}); }
  static LF_INLINE V set1_bits(uint32_t u) { return all(floats(words(u))); }

  static LF_INLINE V load(const float* p) {
    return of_int(load128(p), load128(p + 4), load128(p + 8), load128(p + 12));
  }
  static LF_INLINE V load_part(const float* p, int n) {
    alignas(16) float t[16] = {};
    for (int i = 0; i < n; ++i) t[i] = p[i];
    return load(t);
  }
  LF_INLINE void store(float* p) const {
    __lsx_vst(ints(a), p, 0);
    __lsx_vst(ints(b), p, 16);
    __lsx_vst(ints(c), p, 32);
    __lsx_vst(ints(d), p, 48);
  }
  LF_INLINE void store_part(float* p, int n) const {
    alignas(16) float t[16];
    store(t);
    for (int i = 0; i < n; ++i) p[i] = t[i];
  }

  static LF_INLINE V load(const Bf16* p) {
    const __m128i zero = words(0), x = load128(p), y = load128(p + 8);
    return of_int(__lsx_vilvl_h(x, zero), __lsx_vilvh_h(x, zero), __lsx_vilvl_h(y, zero),
                  __lsx_vilvh_h(y, zero));
  }
  static LF_INLINE V load_part(const Bf16* p, int n) {
    alignas(16) Bf16 t[16] = {};
    for (int i = 0; i < n; ++i) t[i] = p[i];
    return load(t);
  }
  LF_INLINE void store(Bf16* p) const { to_bf16().store_high(p); }
  LF_INLINE void store_part(Bf16* p, int n) const { to_bf16().store_high_part(p, n); }
  LF_INLINE void store_high(Bf16* p) const {
    __lsx_vst(__lsx_vpickod_h(ints(b), ints(a)), p, 0);
    __lsx_vst(__lsx_vpickod_h(ints(d), ints(c)), p, 16);
  }
  LF_INLINE void store_high_part(Bf16* p, int n) const {
    alignas(16) Bf16 t[16];
    store_high(t);
    for (int i = 0; i < n; ++i) p[i] = t[i];
  }
  static LF_INLINE V load_f16(const uint16_t* p) {
    const __m128i x = load128(p), y = load128(p + 8);
    return V{__lsx_vfcvtl_s_h(x), __lsx_vfcvth_s_h(x), __lsx_vfcvtl_s_h(y), __lsx_vfcvth_s_h(y)};
  }
  static LF_INLINE V load_f16_part(const uint16_t* p, int n) {
    alignas(16) uint16_t t[16] = {};
    for (int i = 0; i < n; ++i) t[i] = p[i];
    return load_f16(t);
  }
  LF_INLINE V to_bf16() const {
    return of_int(round_operands(ints(a)), round_operands(ints(b)), round_operands(ints(c)),
                  round_operands(ints(d)));
  }

  friend LF_INLINE V operator+(V x, V y) { return V{x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d}; }
  friend LF_INLINE V operator-(V x, V y) { return V{x.a - y.a, x.b - y.b, x.c - y.c, x.d - y.d}; }
  friend LF_INLINE V operator*(V x, V y) { return V{x.a * y.a, x.b * y.b, x.c * y.c, x.d * y.d}; }
  friend LF_INLINE V operator/(V x, V y) { return V{x.a / y.a, x.b / y.b, x.c / y.c, x.d / y.d}; }
  static LF_INLINE V fma(V x, V y, V z) {
    return V{__lsx_vfmadd_s(x.a, y.a, z.a), __lsx_vfmadd_s(x.b, y.b, z.b),
             __lsx_vfmadd_s(x.c, y.c, z.c), __lsx_vfmadd_s(x.d, y.d, z.d)};
  }
  static LF_INLINE V sqrt(V x) {
    return V{__lsx_vfsqrt_s(x.a), __lsx_vfsqrt_s(x.b), __lsx_vfsqrt_s(x.c), __lsx_vfsqrt_s(x.d)};
  }
  static LF_INLINE V abs(V x) {
    return of_int(__lsx_vbitclri_w(ints(x.a), 31), __lsx_vbitclri_w(ints(x.b), 31),
                  __lsx_vbitclri_w(ints(x.c), 31), __lsx_vbitclri_w(ints(x.d), 31));
  }
  static LF_INLINE V max(V x, V y) { return select_lt(y, x, x, y); }
  static LF_INLINE V min(V x, V y) { return select_lt(x, y, x, y); }
  static LF_INLINE V select_lt(V l, V r, V x, V y) {
    return V{choose(__lsx_vfcmp_clt_s(l.a, r.a), x.a, y.a),
             choose(__lsx_vfcmp_clt_s(l.b, r.b), x.b, y.b),
             choose(__lsx_vfcmp_clt_s(l.c, r.c), x.c, y.c),
             choose(__lsx_vfcmp_clt_s(l.d, r.d), x.d, y.d)};
  }
  static LF_INLINE V select_nan(V v, V x, V y) {
    return V{choose(__lsx_vfcmp_cun_s(v.a, v.a), x.a, y.a),
             choose(__lsx_vfcmp_cun_s(v.b, v.b), x.b, y.b),
             choose(__lsx_vfcmp_cun_s(v.c, v.c), x.c, y.c),
             choose(__lsx_vfcmp_cun_s(v.d, v.d), x.d, y.d)};
  }
  static LF_INLINE V select_first(int n, V x, V y) {
    const __m128i count = words(static_cast<uint32_t>(n));
    return V{choose(__lsx_vslt_w(load128(kLaneNumbers), count), x.a, y.a),
             choose(__lsx_vslt_w(load128(kLaneNumbers + 4), count), x.b, y.b),
             choose(__lsx_vslt_w(load128(kLaneNumbers + 8), count), x.c, y.c),
             choose(__lsx_vslt_w(load128(kLaneNumbers + 12), count), x.d, y.d)};
  }
  static LF_INLINE V select_bits(uint32_t mask, V x, V y) {
    return V{choose(has_bit(mask, 0), x.a, y.a), choose(has_bit(mask, 4), x.b, y.b),
             choose(has_bit(mask, 8), x.c, y.c), choose(has_bit(mask, 12), x.d, y.d)};
  }
  static LF_INLINE V scale2(V x, V k) {
    const V exponent = of_int(__lsx_vftintrz_w_s(k.a), __lsx_vftintrz_w_s(k.b),
                              __lsx_vftintrz_w_s(k.c), __lsx_vftintrz_w_s(k.d));
    return x * shift_left<23>(add_int(exponent, set1_bits(127)));
  }
  static LF_INLINE V round_nearest(V x) {
    const V magic = set1(12582912.0f);
    return (x + magic) - magic;
  }

  static LF_INLINE V bit_and(V x, V y) {
    return of_int(__lsx_vand_v(ints(x.a), ints(y.a)), __lsx_vand_v(ints(x.b), ints(y.b)),
                  __lsx_vand_v(ints(x.c), ints(y.c)), __lsx_vand_v(ints(x.d), ints(y.d)));
  }
  static LF_INLINE V bit_or(V x, V y) {
    return of_int(__lsx_vor_v(ints(x.a), ints(y.a)), __lsx_vor_v(ints(x.b), ints(y.b)),
                  __lsx_vor_v(ints(x.c), ints(y.c)), __lsx_vor_v(ints(x.d), ints(y.d)));
  }
  static LF_INLINE V merge_bits(V mask, V x, V y) {
    return V{choose(ints(mask.a), x.a, y.a), choose(ints(mask.b), x.b, y.b),
             choose(ints(mask.c), x.c, y.c), choose(ints(mask.d), x.d, y.d)};
  }
  static LF_INLINE V add_int(V x, V y) {
    return of_int(__lsx_vadd_w(ints(x.a), ints(y.a)), __lsx_vadd_w(ints(x.b), ints(y.b)),
                  __lsx_vadd_w(ints(x.c), ints(y.c)), __lsx_vadd_w(ints(x.d), ints(y.d)));
  }
  static LF_INLINE V sub_int(V x, V y) {
    return of_int(__lsx_vsub_w(ints(x.a), ints(y.a)), __lsx_vsub_w(ints(x.b), ints(y.b)),
                  __lsx_vsub_w(ints(x.c), ints(y.c)), __lsx_vsub_w(ints(x.d), ints(y.d)));
  }
  static LF_INLINE V max_int(V x, V y) {
    return of_int(__lsx_vmax_w(ints(x.a), ints(y.a)), __lsx_vmax_w(ints(x.b), ints(y.b)),
                  __lsx_vmax_w(ints(x.c), ints(y.c)), __lsx_vmax_w(ints(x.d), ints(y.d)));
  }
  template <int N>
  static LF_INLINE V shift_left(V x) {
    return of_int(__lsx_vslli_w(ints(x.a), N), __lsx_vslli_w(ints(x.b), N),
                  __lsx_vslli_w(ints(x.c), N), __lsx_vslli_w(ints(x.d), N));
  }
  template <int N>
  static LF_INLINE V shift_right(V x) {
    return of_int(__lsx_vsrli_w(ints(x.a), N), __lsx_vsrli_w(ints(x.b), N),
                  __lsx_vsrli_w(ints(x.c), N), __lsx_vsrli_w(ints(x.d), N));
  }
  static LF_INLINE V load_bytes(const uint8_t* p) {
    const __m128i zero = words(0), x = load128(p);
    const __m128i low = __lsx_vilvl_b(zero, x), high = __lsx_vilvh_b(zero, x);
    return of_int(__lsx_vilvl_h(zero, low), __lsx_vilvh_h(zero, low), __lsx_vilvl_h(zero, high),
                  __lsx_vilvh_h(zero, high));
  }
  static LF_INLINE V load_bytes_part(const uint8_t* p, int n) {
    alignas(16) uint8_t t[16] = {};
    for (int i = 0; i < n; ++i) t[i] = p[i];
    return load_bytes(t);
  }
  LF_INLINE void store_bytes(uint8_t* p) const {
    const __m128i low = __lsx_vpickev_h(ints(b), ints(a));
    const __m128i high = __lsx_vpickev_h(ints(d), ints(c));
    __lsx_vst(__lsx_vpickev_b(high, low), p, 0);
  }
  LF_INLINE void store_bytes_part(uint8_t* p, int n) const {
    alignas(16) uint8_t t[16];
    store_bytes(t);
    for (int i = 0; i < n; ++i) p[i] = t[i];
  }
  template <int N>
  static LF_INLINE V fold_halves(V x) {
    return of_int(fold_register<N>(ints(x.a)), fold_register<N>(ints(x.b)),
                  fold_register<N>(ints(x.c)), fold_register<N>(ints(x.d)));
  }
  template <int N, class X>
  static LF_INLINE V store_codes(V x, V y, V z, V w, V /*below*/, const X* from, uint8_t* p) {
    const __m128i a = narrow_words<N>(x), b = narrow_words<N>(y);
    const __m128i c = narrow_words<N>(z), d = narrow_words<N>(w);
    __lsx_vst(with_signs(a, from), p, 0);
    __lsx_vst(with_signs(b, from + 16), p, 16);
    __lsx_vst(with_signs(c, from + 32), p, 32);
    __lsx_vst(with_signs(d, from + 48), p, 48);
    return of_int(a, b, c, d);
  }
  static LF_INLINE V min_bytes(V x, V y) {
    return of_int(__lsx_vmin_bu(ints(x.a), ints(y.a)), __lsx_vmin_bu(ints(x.b), ints(y.b)),
                  __lsx_vmin_bu(ints(x.c), ints(y.c)), __lsx_vmin_bu(ints(x.d), ints(y.d)));
  }
  LF_INLINE bool has_zero_byte() const {
    const __m128i low = __lsx_vmin_bu(ints(a), ints(b)), high = __lsx_vmin_bu(ints(c), ints(d));
    return __lsx_bz_b(__lsx_vmin_bu(low, high)) != 0;
  }
  static LF_INLINE V count_lt(V count, V x, V y) {  // a true comparison is the word -1
    return sub_int(count, of_int(__lsx_vfcmp_clt_s(x.a, y.a), __lsx_vfcmp_clt_s(x.b, y.b),
                                 __lsx_vfcmp_clt_s(x.c, y.c), __lsx_vfcmp_clt_s(x.d, y.d)));
  }
  static LF_INLINE V count_nan(V count, V x) {
    return sub_int(count, of_int(__lsx_vfcmp_cun_s(x.a, x.a), __lsx_vfcmp_cun_s(x.b, x.b),
                                 __lsx_vfcmp_cun_s(x.c, x.c), __lsx_vfcmp_cun_s(x.d, x.d)));
  }
  LF_INLINE uint32_t reduce_add_int() const {
    __m128i x = __lsx_vadd_w(__lsx_vadd_w(ints(a), ints(c)), __lsx_vadd_w(ints(b), ints(d)));
    x = __lsx_vadd_w(x, __lsx_vshuf4i_w(x, 0x4E));
    x = __lsx_vadd_w(x, __lsx_vshuf4i_w(x, 0xB1));
    return __lsx_vpickve2gr_wu(x, 0);
  }
  LF_INLINE uint32_t reduce_max_int() const {
    __m128i x = __lsx_vmax_w(__lsx_vmax_w(ints(a), ints(c)), __lsx_vmax_w(ints(b), ints(d)));
    x = __lsx_vmax_w(x, __lsx_vshuf4i_w(x, 0x4E));
    x = __lsx_vmax_w(x, __lsx_vshuf4i_w(x, 0xB1));
    return __lsx_vpickve2gr_wu(x, 0);
  }

  LF_INLINE float reduce_add() const {
    const __m128 x = (a + c) + (b + d);
    return (x[0] + x[2]) + (x[1] + x[3]);
  }
  LF_INLINE float reduce_max() const {
    const __m128 x = larger(larger(a, c), larger(b, d));
    const __m128 y = larger(x, floats(__lsx_vshuf4i_w(ints(x), 0x4E)));
    return larger(y, floats(__lsx_vshuf4i_w(ints(y), 0xB1)))[0];
  }

  static LF_INLINE uint16_t round_operand(uint32_t u) { return kernels::round_operand(u); }

 private:
  template <int N>
  static LF_INLINE __m128i fold_register(__m128i x) {
    const __m128i weights = words((1u << 16) + (1u << N));
    return __lsx_vmaddwev_w_h(__lsx_vmulwod_w_h(x, weights), x, weights);
  }
  template <int N>
  static LF_INLINE __m128i narrow_words(V x) {
    return __lsx_vpickev_b(__lsx_vsrli_h(__lsx_vpickev_h(ints(x.d), ints(x.c)), N),
                           __lsx_vsrli_h(__lsx_vpickev_h(ints(x.b), ints(x.a)), N));
  }
  static LF_INLINE __m128i with_signs(__m128i codes, __m128i signs) {
    return __lsx_vbitsel_v(codes, signs, __lsx_vreplgr2vr_b(-128));
  }
  static LF_INLINE __m128i with_signs(__m128i codes, const float* x) {
    const __m128i low = __lsx_vpickod_h(load128(x + 4), load128(x));
    const __m128i high = __lsx_vpickod_h(load128(x + 12), load128(x + 8));
    return with_signs(codes, __lsx_vpickod_b(high, low));
  }
  static LF_INLINE __m128i with_signs(__m128i codes, const Bf16* x) {
    return with_signs(codes, __lsx_vpickod_b(load128(x + 8), load128(x)));
  }
  static LF_INLINE __m128 larger(__m128 x, __m128 y) {
    return choose(__lsx_vfcmp_clt_s(y, x), x, y);
  }
  // Lane i: whether bit first + i is set.
  static LF_INLINE __m128i has_bit(uint32_t mask, int first) {
    const __m128i bit = __lsx_vsll_w(words(1), load128(kLaneNumbers + first));
    return __lsx_vseq_w(__lsx_vand_v(words(mask), bit), bit);
  }
  static LF_INLINE __m128i round_operands(__m128i u) {
    const __m128i magnitude = __lsx_vbitclri_w(u, 31);
    const __m128i odd = __lsx_vand_v(__lsx_vsrli_w(u, 16), words(1));
    const __m128i rounded = __lsx_vadd_w(__lsx_vadd_w(u, words(0x7FFFu)), odd);
    const __m128i quiet = __lsx_vbitseti_w(u, 22);
    const __m128i nan = __lsx_vslt_w(words(0x7F800000u), magnitude);
    const __m128i small = __lsx_vslt_w(magnitude, words(static_cast<uint32_t>(127 - 55) << 23));
    const __m128i r = __lsx_vbitsel_v(rounded, quiet, nan);
    return __lsx_vandn_v(small, __lsx_vand_v(r, words(0xFFFF0000u)));
  }
};

struct D {
  __m128d d[8];  // the doubles of a V's lanes, in order
  static LF_INLINE D zero() { return D{}; }
  LF_INLINE void add(V x) {
    add_four(d, x.a);
    add_four(d + 2, x.b);
    add_four(d + 4, x.c);
    add_four(d + 6, x.d);
  }
  LF_INLINE void add_square(V x) {
    add_squares(d, x.a);
    add_squares(d + 2, x.b);
    add_squares(d + 4, x.c);
    add_squares(d + 6, x.d);
  }
  LF_INLINE double reduce_add() const {
    const __m128d x = ((d[0] + d[4]) + (d[2] + d[6])) + ((d[1] + d[5]) + (d[3] + d[7]));
    return x[0] + x[1];
  }

 private:
  static LF_INLINE void add_four(__m128d* sum, __m128 x) {
    sum[0] = sum[0] + __lsx_vfcvtl_d_s(x);
    sum[1] = sum[1] + __lsx_vfcvth_d_s(x);
  }
  // The squares are exact, so fma equals multiply, then add.
  static LF_INLINE void add_squares(__m128d* sum, __m128 x) {
    const __m128d low = __lsx_vfcvtl_d_s(x), high = __lsx_vfcvth_d_s(x);
    sum[0] = __lsx_vfmadd_d(low, low, sum[0]);
    sum[1] = __lsx_vfmadd_d(high, high, sum[1]);
  }
};

}  // namespace
}  // namespace loongforge::kernels::lsx
