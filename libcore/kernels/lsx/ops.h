// What the LSX ISA gives to the generic gemm and attention: see generic/tile.md. 6 rows x 16
// columns: 24 accumulators, 4 registers of B and broadcasts of A fill the 32 registers.
#pragma once

#include "kernels/generic/panel_tile.h"
#include "kernels/lsx/codes.h"
#include "kernels/lsx/vec.h"
#include "kernels/nf4_format.h"

namespace loongforge::kernels::lsx {
namespace {

// One register of 4 fp32.
struct R {
  static constexpr int kLanes = 4;
  __m128 v;

  static LF_INLINE R of_int(__m128i x) { return R{floats(x)}; }
  static LF_INLINE R zero() { return set1_bits(0); }
  static LF_INLINE R set1(float x) { return R{V::set1(x).a}; }
  static LF_INLINE R set1_bits(uint32_t u) { return of_int(words(u)); }
  static LF_INLINE R broadcast(const float* p) { return of_int(__lsx_vldrepl_w(p, 0)); }
  static LF_INLINE R load(const float* p) { return of_int(load128(p)); }
  static LF_INLINE R load(const Bf16* p) {
    return of_int(__lsx_vilvl_h(__lsx_vldrepl_d(p, 0), words(0)));
  }
  template <class T>
  static LF_INLINE R load_part(const T* p, int n) {
    return load_part_by_copy<R>(p, n);
  }
  LF_INLINE void store(float* p) const { __lsx_vst(ints(v), p, 0); }
  LF_INLINE void store_part(float* p, int n) const { store_part_by_copy(*this, p, n); }

  LF_INLINE R to_bf16() const { return R{V::all(v).to_bf16().a}; }
  LF_INLINE R flushed() const {
    const __m128i least = words(static_cast<uint32_t>(127 - 55) << 23);
    const __m128i small = __lsx_vslt_w(__lsx_vbitclri_w(ints(v), 31), least);
    return of_int(__lsx_vandn_v(small, ints(v)));
  }
  friend LF_INLINE R operator*(R a, R b) { return R{__lsx_vfmul_s(a.v, b.v)}; }
  static LF_INLINE R bit_and(R a, R b) { return of_int(__lsx_vand_v(ints(a.v), ints(b.v))); }
  static LF_INLINE R fma(R a, R b, R c) { return R{__lsx_vfmadd_s(a.v, b.v, c.v)}; }
  // The same as asm, so that each sum stays in its register.
  static LF_INLINE R mul_add(R x, R y, R sum) {
    __asm__("vfmadd.s %w0, %w1, %w2, %w0" : "+f"(sum.v) : "f"(x.v), "f"(y.v));
    return sum;
  }

  static LF_INLINE void transpose(R r[4]) {
    const __m128i a = ints(r[0].v), b = ints(r[1].v), c = ints(r[2].v), d = ints(r[3].v);
    const __m128i ab_low = __lsx_vilvl_w(b, a), ab_high = __lsx_vilvh_w(b, a);
    const __m128i cd_low = __lsx_vilvl_w(d, c), cd_high = __lsx_vilvh_w(d, c);
    r[0] = of_int(__lsx_vilvl_d(cd_low, ab_low));
    r[1] = of_int(__lsx_vilvh_d(cd_low, ab_low));
    r[2] = of_int(__lsx_vilvl_d(cd_high, ab_high));
    r[3] = of_int(__lsx_vilvh_d(cd_high, ab_high));
  }
};

using Codes = CodeBlocks::Codes;

// A code in the upper byte of a 16-bit word, for E4M3-LA with its exponent moved to where fp16's
// low exponent bits are, is the fp16 of value * 2^-3 (E5M2: of the value itself), subnormals
// included.
template <bool kE4M3, bool kSmall>
struct Fp8Decoder {
  __m128 scale;

  explicit LF_INLINE Fp8Decoder(int exp) : scale(power_of_two(kE4M3 ? exp + 3 : exp)) {}

  LF_INLINE V operator()(Codes codes) const {
    const __m128i low = half(__lsx_vilvl_b(codes, words(0)));
    const __m128i high = half(__lsx_vilvh_b(codes, words(0)));
    return V{value(__lsx_vfcvtl_s_h(low)), value(__lsx_vfcvth_s_h(low)),
             value(__lsx_vfcvtl_s_h(high)), value(__lsx_vfcvth_s_h(high))};
  }

 private:
  static LF_INLINE __m128i half(__m128i x) {
    if constexpr (!kE4M3) return x;
    return __lsx_vbitclri_h(__lsx_vsrai_h(x, 1), 14);  // the sign came along
  }
  LF_INLINE __m128 value(__m128 x) const {
    x = x * scale;
    if constexpr (!kSmall) return x;
    return R{x}.flushed().v;
  }
  static LF_INLINE __m128 power_of_two(int exp) {
    return floats(words(static_cast<uint32_t>(exp + 127) << 23));
  }
};

struct Nf4Table {
  using Words = __m128i;
  __m128i t0 = load128(kNf4Values), t1 = load128(kNf4Values + 4);
  __m128i t2 = load128(kNf4Values + 8), t3 = load128(kNf4Values + 12);

  static LF_INLINE Words load(const uint8_t* p) { return load128(p); }
  static LF_INLINE Words next(Words words) { return __lsx_vsrli_w(words, 4); }

  template <int kNibble>
  LF_INLINE R at(Words words) const {
    return look_up(kNibble == 0 ? words : __lsx_vsrli_w(words, 4 * kNibble));
  }
  LF_INLINE V row(uint32_t first, uint32_t second) const {
    alignas(16) static constexpr int32_t kShifts[8] = {4, 0, 12, 8, 20, 16, 28, 24};
    const __m128i a = load128(kShifts), b = load128(kShifts + 4);
    return V{look_up(__lsx_vsrl_w(words(first), a)).v, look_up(__lsx_vsrl_w(words(first), b)).v,
             look_up(__lsx_vsrl_w(words(second), a)).v, look_up(__lsx_vsrl_w(words(second), b)).v};
  }

 private:
  // Of the words' lowest nibbles: three bits choose in each half of the table, the fourth between
  // the halves.
  LF_INLINE R look_up(__m128i nibbles) const {
    const __m128i upper = __lsx_vslti_w(__lsx_vslli_w(nibbles, 28), 0);
    const __m128i index = __lsx_vand_v(nibbles, words(7));
    return R::of_int(
        __lsx_vbitsel_v(__lsx_vshuf_w(index, t1, t0), __lsx_vshuf_w(index, t3, t2), upper));
  }
};

struct Ops : CodeBlocks {
  using V = lsx::V;
  using R = lsx::R;
  template <bool kE4M3, bool kSmall>
  using Fp8 = Fp8Decoder<kE4M3, kSmall>;
  using Nf4 = Nf4Table;
  template <bool kRounds>
  using Tiles = RegisterTiles<FmaStep<Ops>, 1, 2>;

  static constexpr int kMr = 6, kNr = 16;
  // A panel of B takes half of the first cache (64 KiB), A is kept within the second.
  static constexpr int64_t kABytes = 512 << 10;
  static constexpr int64_t kKBlock = 512, kShortKBlock = 256;
  static constexpr int kStrips = 8, kQueries = 96, kKeys = 128;  // blocks of attention
  static constexpr int64_t kRowsAhead = 16;
  static constexpr int64_t kFewAhead = 1024;

  template <int kPart>
  static LF_INLINE R part(const V& x) {
    return R{kPart == 0 ? x.a : kPart == 1 ? x.b : kPart == 2 ? x.c : x.d};
  }
};

}  // namespace
}  // namespace loongforge::kernels::lsx
