// What the LASX ISA gives to the generic gemm and attention: see generic/tile.md. 6 rows x 32
// columns: 24 accumulators, 4 registers of B and broadcasts of A fill the 32 registers.
#pragma once

#include "kernels/generic/panel_tile.h"
#include "kernels/lasx/vec.h"
#include "kernels/lsx/codes.h"
#include "kernels/nf4_format.h"

namespace loongforge::kernels::lasx {
namespace {

// One register of 8 fp32.
struct R {
  static constexpr int kLanes = 8;
  __m256 v;

  static LF_INLINE R of_int(__m256i x) { return R{floats(x)}; }
  static LF_INLINE R zero() { return set1_bits(0); }
  static LF_INLINE R set1(float x) { return R{V::set1(x).lo}; }
  static LF_INLINE R set1_bits(uint32_t u) { return of_int(words(u)); }
  static LF_INLINE R broadcast(const float* p) { return of_int(__lasx_xvldrepl_w(p, 0)); }
  static LF_INLINE R load(const float* p) { return of_int(load256(p)); }
  static LF_INLINE R load(const Bf16* p) {
    return of_int(__lasx_xvslli_w(__lasx_vext2xv_wu_hu(wide(__lsx_vld(p, 0))), 16));
  }
  template <class T>
  static LF_INLINE R load_part(const T* p, int n) {
    return load_part_by_copy<R>(p, n);
  }
  LF_INLINE void store(float* p) const { __lasx_xvst(ints(v), p, 0); }
  LF_INLINE void store_part(float* p, int n) const { store_part_by_copy(*this, p, n); }

  LF_INLINE R to_bf16() const { return R{V::of(v, v).to_bf16().lo}; }
  LF_INLINE R flushed() const {
    const __m256i least = words(static_cast<uint32_t>(127 - 55) << 23);
    const __m256i small = __lasx_xvslt_w(__lasx_xvbitclri_w(ints(v), 31), least);
    return of_int(__lasx_xvandn_v(small, ints(v)));
  }
  friend LF_INLINE R operator*(R a, R b) { return R{__lasx_xvfmul_s(a.v, b.v)}; }
  static LF_INLINE R bit_and(R a, R b) { return of_int(__lasx_xvand_v(ints(a.v), ints(b.v))); }
  static LF_INLINE R fma(R a, R b, R c) { return R{__lasx_xvfmadd_s(a.v, b.v, c.v)}; }
  // The same as asm, so that each sum stays in its register.
  static LF_INLINE R mul_add(R x, R y, R sum) {
    __asm__("xvfmadd.s %u0, %u1, %u2, %u0" : "+f"(sum.v) : "f"(x.v), "f"(y.v));
    return sum;
  }

  static LF_INLINE void transpose(R r[8]) {
    __m256i t[8], u[8];
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
      t[2 * i] = __lasx_xvilvl_w(ints(r[2 * i + 1].v), ints(r[2 * i].v));
      t[2 * i + 1] = __lasx_xvilvh_w(ints(r[2 * i + 1].v), ints(r[2 * i].v));
    }
#pragma GCC unroll 16
    for (int i = 0; i < 2; ++i) {
      u[4 * i] = __lasx_xvilvl_d(t[4 * i + 2], t[4 * i]);
      u[4 * i + 1] = __lasx_xvilvh_d(t[4 * i + 2], t[4 * i]);
      u[4 * i + 2] = __lasx_xvilvl_d(t[4 * i + 3], t[4 * i + 1]);
      u[4 * i + 3] = __lasx_xvilvh_d(t[4 * i + 3], t[4 * i + 1]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
      r[i] = of_int(__lasx_xvpermi_q(u[i + 4], u[i], 0x20));
      r[i + 4] = of_int(__lasx_xvpermi_q(u[i + 4], u[i], 0x31));
    }
  }
};

using Codes = lsx::CodeBlocks::Codes;

// A code moved to the top of a 16-bit word and, for E4M3-LA, its exponent to where fp16's low
// exponent bits are, is the fp16 of value * 2^-3 (E5M2: of the value itself), subnormals included.
template <bool kE4M3, bool kSmall>
struct Fp8Decoder {
  __m256 scale;

  explicit LF_INLINE Fp8Decoder(int exp) : scale(power_of_two(kE4M3 ? exp + 3 : exp)) {}

  LF_INLINE V operator()(Codes codes) const {
    __m256i halves = __lasx_xvslli_h(__lasx_vext2xv_h_b(wide(codes)), kE4M3 ? 7 : 8);
    // The extended sign reached fp16's top exponent bit.
    if constexpr (kE4M3) halves = __lasx_xvbitclri_h(halves, 14);
    // The conversions take the low and the high four of each half.
    halves = __lasx_xvpermi_d(halves, 0xD8);
    return V::of(flush(__lasx_xvfmul_s(__lasx_xvfcvtl_s_h(halves), scale)),
                 flush(__lasx_xvfmul_s(__lasx_xvfcvth_s_h(halves), scale)));
  }

 private:
  static LF_INLINE __m256 power_of_two(int exp) {
    return floats(words(static_cast<uint32_t>(exp + 127) << 23));
  }
  static LF_INLINE __m256 flush(__m256 x) {
    if constexpr (!kSmall) return x;
    return R{x}.flushed().v;
  }
};

struct Nf4Table {
  using Words = __m256i;
  __m256i low = load256(kNf4Values), high = load256(kNf4Values + 8);

  static LF_INLINE Words load(const uint8_t* p) { return load256(p); }
  static LF_INLINE Words next(Words words) { return __lasx_xvsrli_w(words, 4); }

  template <int kNibble>
  LF_INLINE R at(Words words) const {
    return look_up(kNibble == 0 ? words : __lasx_xvsrli_w(words, 4 * kNibble));
  }
  LF_INLINE V row(uint32_t first, uint32_t second) const {
    return V::of(row8(first).v, row8(second).v);
  }

 private:
  LF_INLINE R row8(uint32_t word) const {
    alignas(32) static constexpr int32_t kShifts[8] = {4, 0, 12, 8, 20, 16, 28, 24};
    return look_up(__lasx_xvsrl_w(words(word), load256(kShifts)));
  }
  // Of the words' lowest nibbles: three bits choose in each half of the table, the fourth between
  // the halves.
  LF_INLINE R look_up(__m256i index) const {
    const __m256i upper = __lasx_xvslti_w(__lasx_xvslli_w(index, 28), 0);
    return R::of_int(
        __lasx_xvbitsel_v(__lasx_xvperm_w(low, index), __lasx_xvperm_w(high, index), upper));
  }
};

struct Ops : lsx::CodeBlocks {
  using V = lasx::V;
  using R = lasx::R;
  template <bool kE4M3, bool kSmall>
  using Fp8 = Fp8Decoder<kE4M3, kSmall>;
  using Nf4 = Nf4Table;
  template <bool kRounds>
  using Tiles = RegisterTiles<FmaStep<Ops>, 1, 2>;

  static constexpr int kMr = 6, kNr = 32;
  // A panel of B takes half of the first cache (64 KiB), A is kept within the second.
  static constexpr int64_t kABytes = 512 << 10;
  static constexpr int64_t kKBlock = 256, kShortKBlock = 256;
  static constexpr int kStrips = 8, kQueries = 96, kKeys = 128;  // blocks of attention
  static constexpr int64_t kRowsAhead = 16;
  static constexpr int64_t kFewAhead = 1024;

  template <int kPart>
  static LF_INLINE R part(const V& x) {
    return R{kPart == 0 ? x.lo : x.hi};
  }
};

}  // namespace
}  // namespace loongforge::kernels::lasx
