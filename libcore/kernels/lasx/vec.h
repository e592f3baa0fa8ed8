// V (see scalar/vec.h, its specification) on two LASX registers.
//
// LASX works within 128-bit halves (interleave, pack, convert): xvpermi.d puts the quarters where
// it wants them. There are no masks: what is shorter than 16 lanes goes through a buffer. Its
// fp maximum and minimum treat NaN otherwise than V, so both are a comparison and a choice.
#pragma once

#include <lasxintrin.h>
#include <lsxintrin.h>
#include <stdint.h>

#include "kernels/types.h"

namespace loongforge::kernels::lasx {
namespace {

alignas(32) constexpr int32_t kLaneNumbers[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                  8, 9, 10, 11, 12, 13, 14, 15};

// Where the quarters of four registers lie that were packed within 128 bits.
alignas(32) constexpr int32_t kQuarters[8] = {0, 4, 1, 5, 2, 6, 3, 7};

// A register as its low half and back: the same register by its other name.
LF_INLINE __m256i wide(__m128i x) {
  __m256i r;
  __asm__("" : "=f"(r) : "0"(x));
  return r;
}
LF_INLINE __m128i low_half(__m256i x) {
  __m128i r;
  __asm__("" : "=f"(r) : "0"(x));
  return r;
}
LF_INLINE __m256i swap_halves(__m256i x) { return __lasx_xvpermi_q(x, x, 0x01); }
LF_INLINE __m256i ints(__m256 x) { return reinterpret_cast<__m256i>(x); }
LF_INLINE __m256 floats(__m256i x) { return reinterpret_cast<__m256>(x); }
LF_INLINE __m256i words(uint32_t u) { return __lasx_xvreplgr2vr_w(static_cast<int>(u)); }
LF_INLINE __m256i load256(const void* p) { return __lasx_xvld(p, 0); }
// mask lane by lane: all ones takes x, zero takes y.
LF_INLINE __m256 choose(__m256i mask, __m256 x, __m256 y) {
  return floats(__lasx_xvbitsel_v(ints(y), ints(x), mask));
}

struct V {
  static constexpr int kLanes = 16;
  static constexpr int kTogether = 1;
  static constexpr bool kMergesBits = true;
  __m256 lo, hi;  // lanes 0 .. 7, 8 .. 15

  static LF_INLINE V of(__m256 lo, __m256 hi) { return V{lo, hi}; }
  static LF_INLINE V of_int(__m256i lo, __m256i hi) { return V{floats(lo), floats(hi)}; }
  LF_INLINE __m256i lo_int() const { return ints(lo); }
  LF_INLINE __m256i hi_int() const { return ints(hi); }

  static LF_INLINE V zero() { return set1_bits(0); }
  static LF_INLINE V set1(float x) {
    const __m256 r = {x, x, x, x, x, x, x, x};
    return V{r, r};
  }
  static LF_INLINE V set1_bits(uint32_t u) { return of_int(words(u), words(u)); }

  static LF_INLINE V load(const float* p) { return of_int(load256(p), load256(p + 8)); }
  static LF_INLINE V load_part(const float* p, int n) {
    alignas(32) float t[16] = {};
    for (int i = 0; i < n; ++i) t[i] = p[i];
    return load(t);
  }
  LF_INLINE void store(float* p) const {
    __lasx_xvst(lo_int(), p, 0);
    __lasx_xvst(hi_int(), p, 32);
  }
  LF_INLINE void store_part(float* p, int n) const {
    alignas(32) float t[16];
    store(t);
    for (int i = 0; i < n; ++i) p[i] = t[i];
  }

  static LF_INLINE V load(const Bf16* p) {
    const __m256i zero = words(0);
    const __m256i x = __lasx_xvpermi_d(load256(p), 0xD8);
    return of_int(__lasx_xvilvl_h(x, zero), __lasx_xvilvh_h(x, zero));
  }
  static LF_INLINE V load_part(const Bf16* p, int n) {
    alignas(32) Bf16 t[16] = {};
    for (int i = 0; i < n; ++i) t[i] = p[i];
    return load(t);
  }
  LF_INLINE void store(Bf16* p) const { to_bf16().store_high(p); }
  LF_INLINE void store_part(Bf16* p, int n) const { to_bf16().store_high_part(p, n); }
  LF_INLINE void store_high(Bf16* p) const {
    __lasx_xvst(__lasx_xvpermi_d(__lasx_xvpickod_h(hi_int(), lo_int()), 0xD8), p, 0);
  }
  LF_INLINE void store_high_part(Bf16* p, int n) const {
    alignas(32) Bf16 t[16];
    store_high(t);
    for (int i = 0; i < n; ++i) p[i] = t[i];
  }
  static LF_INLINE V load_f16(const uint16_t* p) {
    const __m256i x = __lasx_xvpermi_d(load256(p), 0xD8);
    return V{__lasx_xvfcvtl_s_h(x), __lasx_xvfcvth_s_h(x)};
  }
  static LF_INLINE V load_f16_part(const uint16_t* p, int n) {
    alignas(32) uint16_t t[16] = {};
    for (int i = 0; i < n; ++i) t[i] = p[i];
    return load_f16(t);
  }
  LF_INLINE V to_bf16() const { return of_int(round_operands(lo_int()), round_operands(hi_int())); }

  friend LF_INLINE V operator+(V a, V b) {
    return V{__lasx_xvfadd_s(a.lo, b.lo), __lasx_xvfadd_s(a.hi, b.hi)};
  }
  friend LF_INLINE V operator-(V a, V b) {
    return V{__lasx_xvfsub_s(a.lo, b.lo), __lasx_xvfsub_s(a.hi, b.hi)};
  }
  friend LF_INLINE V operator*(V a, V b) {
    return V{__lasx_xvfmul_s(a.lo, b.lo), __lasx_xvfmul_s(a.hi, b.hi)};
  }
  friend LF_INLINE V operator/(V a, V b) {
    return V{__lasx_xvfdiv_s(a.lo, b.lo), __lasx_xvfdiv_s(a.hi, b.hi)};
  }
  static LF_INLINE V fma(V a, V b, V c) {
    return V{__lasx_xvfmadd_s(a.lo, b.lo, c.lo), __lasx_xvfmadd_s(a.hi, b.hi, c.hi)};
  }
  static LF_INLINE V sqrt(V a) { return V{__lasx_xvfsqrt_s(a.lo), __lasx_xvfsqrt_s(a.hi)}; }
  static LF_INLINE V abs(V a) {
    return of_int(__lasx_xvbitclri_w(a.lo_int(), 31), __lasx_xvbitclri_w(a.hi_int(), 31));
  }
  static LF_INLINE V max(V a, V b) { return select_lt(b, a, a, b); }
  static LF_INLINE V min(V a, V b) { return select_lt(a, b, a, b); }
  static LF_INLINE V select_lt(V a, V b, V x, V y) {
    return V{choose(__lasx_xvfcmp_clt_s(a.lo, b.lo), x.lo, y.lo),
             choose(__lasx_xvfcmp_clt_s(a.hi, b.hi), x.hi, y.hi)};
  }
  static LF_INLINE V select_nan(V a, V x, V y) {
    return V{choose(__lasx_xvfcmp_cun_s(a.lo, a.lo), x.lo, y.lo),
             choose(__lasx_xvfcmp_cun_s(a.hi, a.hi), x.hi, y.hi)};
  }
  static LF_INLINE V select_first(int n, V a, V b) {
    const __m256i count = words(static_cast<uint32_t>(n));
    return V{choose(__lasx_xvslt_w(load256(kLaneNumbers), count), a.lo, b.lo),
             choose(__lasx_xvslt_w(load256(kLaneNumbers + 8), count), a.hi, b.hi)};
  }
  static LF_INLINE V select_bits(uint32_t mask, V a, V b) {
    const __m256i one = words(1);
    const __m256i lo_bit = __lasx_xvsll_w(one, load256(kLaneNumbers));
    const __m256i hi_bit = __lasx_xvsll_w(one, load256(kLaneNumbers + 8));
    return V{choose(__lasx_xvseq_w(__lasx_xvand_v(words(mask), lo_bit), lo_bit), a.lo, b.lo),
             choose(__lasx_xvseq_w(__lasx_xvand_v(words(mask), hi_bit), hi_bit), a.hi, b.hi)};
  }
  static LF_INLINE V scale2(V x, V k) {
    const V exponent = of_int(__lasx_xvftintrz_w_s(k.lo), __lasx_xvftintrz_w_s(k.hi));
    return x * shift_left<23>(add_int(exponent, set1_bits(127)));
  }
  static LF_INLINE V round_nearest(V a) {
    const V magic = set1(12582912.0f);
    return (a + magic) - magic;
  }

  static LF_INLINE V bit_and(V a, V b) {
    return of_int(__lasx_xvand_v(a.lo_int(), b.lo_int()), __lasx_xvand_v(a.hi_int(), b.hi_int()));
  }
  static LF_INLINE V bit_or(V a, V b) {
    return of_int(__lasx_xvor_v(a.lo_int(), b.lo_int()), __lasx_xvor_v(a.hi_int(), b.hi_int()));
  }
  static LF_INLINE V merge_bits(V mask, V a, V b) {
    return V{choose(mask.lo_int(), a.lo, b.lo), choose(mask.hi_int(), a.hi, b.hi)};
  }
  static LF_INLINE V add_int(V a, V b) {
    return of_int(__lasx_xvadd_w(a.lo_int(), b.lo_int()), __lasx_xvadd_w(a.hi_int(), b.hi_int()));
  }
  static LF_INLINE V sub_int(V a, V b) {
    return of_int(__lasx_xvsub_w(a.lo_int(), b.lo_int()), __lasx_xvsub_w(a.hi_int(), b.hi_int()));
  }
  static LF_INLINE V max_int(V a, V b) {
    return of_int(__lasx_xvmax_w(a.lo_int(), b.lo_int()), __lasx_xvmax_w(a.hi_int(), b.hi_int()));
  }
  template <int N>
  static LF_INLINE V shift_left(V a) {
    return of_int(__lasx_xvslli_w(a.lo_int(), N), __lasx_xvslli_w(a.hi_int(), N));
  }
  template <int N>
  static LF_INLINE V shift_right(V a) {
    return of_int(__lasx_xvsrli_w(a.lo_int(), N), __lasx_xvsrli_w(a.hi_int(), N));
  }
  static LF_INLINE V load_bytes(const uint8_t* p) {
    return of_int(__lasx_vext2xv_wu_bu(__lasx_xvldrepl_d(p, 0)),
                  __lasx_vext2xv_wu_bu(__lasx_xvldrepl_d(p, 8)));
  }
  static LF_INLINE V load_bytes_part(const uint8_t* p, int n) {
    alignas(16) uint8_t t[16] = {};
    for (int i = 0; i < n; ++i) t[i] = p[i];
    return load_bytes(t);
  }
  LF_INLINE void store_bytes(uint8_t* p) const {
    const __m256i halves = __lasx_xvpermi_d(__lasx_xvpickev_h(hi_int(), lo_int()), 0xD8);
    const __m256i bytes = __lasx_xvpickev_b(halves, halves);
    __lasx_xvstelm_d(bytes, p, 0, 0);
    __lasx_xvstelm_d(bytes, p, 8, 2);
  }
  LF_INLINE void store_bytes_part(uint8_t* p, int n) const {
    alignas(16) uint8_t t[16];
    store_bytes(t);
    for (int i = 0; i < n; ++i) p[i] = t[i];
  }
  template <int N>
  static LF_INLINE V fold_halves(V a) {
    return of_int(fold_register<N>(a.lo_int()), fold_register<N>(a.hi_int()));
  }
  template <int N, class X>
  static LF_INLINE V store_codes(V a, V b, V c, V d, V /*below*/, const X* x, uint8_t* p) {
    const __m256i low = narrow_words<N>(a, b), high = narrow_words<N>(c, d);
    __lasx_xvst(in_order(low, x), p, 0);
    __lasx_xvst(in_order(high, x + 32), p, 32);
    return of_int(low, high);
  }
  static LF_INLINE V min_bytes(V a, V b) {
    return of_int(__lasx_xvmin_bu(a.lo_int(), b.lo_int()), __lasx_xvmin_bu(a.hi_int(), b.hi_int()));
  }
  LF_INLINE bool has_zero_byte() const {
    return __lasx_xbz_b(__lasx_xvmin_bu(lo_int(), hi_int())) != 0;
  }
  static LF_INLINE V count_lt(V count, V a, V b) {  // a true comparison is the word -1
    return sub_int(count, of_int(__lasx_xvfcmp_clt_s(a.lo, b.lo), __lasx_xvfcmp_clt_s(a.hi, b.hi)));
  }
  static LF_INLINE V count_nan(V count, V a) {
    return sub_int(count, of_int(__lasx_xvfcmp_cun_s(a.lo, a.lo), __lasx_xvfcmp_cun_s(a.hi, a.hi)));
  }
  LF_INLINE uint32_t reduce_add_int() const {
    __m256i x = __lasx_xvadd_w(lo_int(), hi_int());
    x = __lasx_xvadd_w(x, swap_halves(x));
    x = __lasx_xvadd_w(x, __lasx_xvshuf4i_w(x, 0x4E));
    x = __lasx_xvadd_w(x, __lasx_xvshuf4i_w(x, 0xB1));
    return __lasx_xvpickve2gr_wu(x, 0);
  }
  LF_INLINE uint32_t reduce_max_int() const {
    __m256i x = __lasx_xvmax_w(lo_int(), hi_int());
    x = __lasx_xvmax_w(x, swap_halves(x));
    x = __lasx_xvmax_w(x, __lasx_xvshuf4i_w(x, 0x4E));
    x = __lasx_xvmax_w(x, __lasx_xvshuf4i_w(x, 0xB1));
    return __lasx_xvpickve2gr_wu(x, 0);
  }

  LF_INLINE float reduce_add() const {
    __m256 x = __lasx_xvfadd_s(lo, hi);
    x = __lasx_xvfadd_s(x, floats(swap_halves(ints(x))));
    x = __lasx_xvfadd_s(x, floats(__lasx_xvshuf4i_w(ints(x), 0x4E)));
    x = __lasx_xvfadd_s(x, floats(__lasx_xvshuf4i_w(ints(x), 0xB1)));
    return x[0];
  }
  LF_INLINE float reduce_max() const {
    __m256 x = larger(lo, hi);
    x = larger(x, floats(swap_halves(ints(x))));
    x = larger(x, floats(__lasx_xvshuf4i_w(ints(x), 0x4E)));
    return larger(x, floats(__lasx_xvshuf4i_w(ints(x), 0xB1)))[0];
  }

  static LF_INLINE uint16_t round_operand(uint32_t u) { return kernels::round_operand(u); }

 private:
  template <int N>
  static LF_INLINE __m256i fold_register(__m256i a) {
    const __m256i weights = words((1u << 16) + (1u << N));
    return __lasx_xvmaddwev_w_h(__lasx_xvmulwod_w_h(a, weights), a, weights);
  }
  // Picking works within 128 bits: it leaves the quarters of the four registers of a and b beside
  // each other.
  template <int N>
  static LF_INLINE __m256i narrow_words(V a, V b) {
    return __lasx_xvpickev_b(__lasx_xvsrli_h(__lasx_xvpickev_h(b.hi_int(), b.lo_int()), N),
                             __lasx_xvsrli_h(__lasx_xvpickev_h(a.hi_int(), a.lo_int()), N));
  }
  static LF_INLINE __m256i quarters_in_order(__m256i packed) {
    return __lasx_xvperm_w(packed, load256(kQuarters));
  }
  static LF_INLINE __m256i with_signs(__m256i codes, __m256i signs) {
    return __lasx_xvbitsel_v(codes, signs, __lasx_xvreplgr2vr_b(-128));
  }
  static LF_INLINE __m256i in_order(__m256i codes, const float* x) {
    const __m256i low = __lasx_xvpickod_h(load256(x + 8), load256(x));
    const __m256i high = __lasx_xvpickod_h(load256(x + 24), load256(x + 16));
    return quarters_in_order(with_signs(codes, __lasx_xvpickod_b(high, low)));
  }
  static LF_INLINE __m256i in_order(__m256i codes, const Bf16* x) {
    const __m256i signs = __lasx_xvpickod_b(load256(x + 16), load256(x));
    return with_signs(quarters_in_order(codes), __lasx_xvpermi_d(signs, 0xD8));
  }
  static LF_INLINE __m256 larger(__m256 a, __m256 b) {
    return choose(__lasx_xvfcmp_clt_s(b, a), a, b);
  }
  static LF_INLINE __m256i round_operands(__m256i u) {
    const __m256i magnitude = __lasx_xvbitclri_w(u, 31);
    const __m256i odd = __lasx_xvand_v(__lasx_xvsrli_w(u, 16), words(1));
    const __m256i rounded = __lasx_xvadd_w(__lasx_xvadd_w(u, words(0x7FFFu)), odd);
    const __m256i quiet = __lasx_xvbitseti_w(u, 22);
    const __m256i nan = __lasx_xvslt_w(words(0x7F800000u), magnitude);
    const __m256i small = __lasx_xvslt_w(magnitude, words(static_cast<uint32_t>(127 - 55) << 23));
    const __m256i r = __lasx_xvbitsel_v(rounded, quiet, nan);
    return __lasx_xvandn_v(small, __lasx_xvand_v(r, words(0xFFFF0000u)));
  }
};

// The doubles of a V's lanes 0 1 4 5, 2 3 6 7, 8 9 12 13, 10 11 14 15: as the conversion leaves
// them.
struct D {
  __m256d d0, d1, d2, d3;
  static LF_INLINE D zero() {
    const __m256d z = {0, 0, 0, 0};
    return D{z, z, z, z};
  }
  LF_INLINE void add(V x) {
    d0 = __lasx_xvfadd_d(d0, __lasx_xvfcvtl_d_s(x.lo));
    d1 = __lasx_xvfadd_d(d1, __lasx_xvfcvth_d_s(x.lo));
    d2 = __lasx_xvfadd_d(d2, __lasx_xvfcvtl_d_s(x.hi));
    d3 = __lasx_xvfadd_d(d3, __lasx_xvfcvth_d_s(x.hi));
  }
  LF_INLINE void add_square(V x) {
    const __m256d a = __lasx_xvfcvtl_d_s(x.lo), b = __lasx_xvfcvth_d_s(x.lo);
    const __m256d c = __lasx_xvfcvtl_d_s(x.hi), e = __lasx_xvfcvth_d_s(x.hi);
    // The squares are exact, so fma equals multiply, then add.
    d0 = __lasx_xvfmadd_d(a, a, d0);
    d1 = __lasx_xvfmadd_d(b, b, d1);
    d2 = __lasx_xvfmadd_d(c, c, d2);
    d3 = __lasx_xvfmadd_d(e, e, d3);
  }
  LF_INLINE double reduce_add() const {
    const __m256d a = __lasx_xvfadd_d(d0, d2);  // 0 1 4 5
    const __m256d b = __lasx_xvfadd_d(d1, d3);  // 2 3 6 7
    const double t0 = (a[0] + a[2]) + (b[0] + b[2]);
    const double t1 = (a[1] + a[3]) + (b[1] + b[3]);
    return t0 + t1;
  }
};

}  // namespace
}  // namespace loongforge::kernels::lasx
