// The FP8 formats, value by value: what every ISA's encoder and decoder must equal.
//
// E4M3-LA (Elem::kE4M3): sign, 4 exponent bits with bias 12, 3 mantissa bits; no infinities, NaN =
// 0x7F and 0xFF; largest 14, smallest 2^-14. Code for code it is OCP E4M3 times 2^-5. E5M2
// (Elem::kE5M2) is OCP's: bias 15, infinities 0x7C and 0xFC, NaN above; largest 57344, smallest
// 2^-16. Source: DESIGN 3; OCP OFP8 specification. Encoding rounds to nearest even and saturates
// (infinities too); NaN becomes 0x7F; -0 stays -0. Freestanding and constexpr; exact integer
// arithmetic, no floating point.
#pragma once

#include <stdint.h>

#include "kernels/types.h"

namespace loongforge::kernels {

template <Elem kElem>
struct Fp8;

template <>
struct Fp8<Elem::kE4M3> {
  static constexpr int kMantissaBits = 3;
  static constexpr int kBias = 12;
  static constexpr uint8_t kMaxCode = 0x7E;
  static constexpr float kMax = 14.0f;
  static constexpr float kOverflowAbove =
      14.5f;  // the largest magnitude that still rounds to kMax (a tie, to even)
  static constexpr float kZeroUpTo =
      0x1p-15f;  // the largest magnitude that rounds to 0 (a tie, to even)
  static constexpr float kInfinityFrom =
      15.0f;  // decoded as a finite code, where infinity would begin: none,
  static constexpr float kNanFrom = 15.0f;  // and where NaN begins
};

template <>
struct Fp8<Elem::kE5M2> {
  static constexpr int kMantissaBits = 2;
  static constexpr int kBias = 15;
  static constexpr uint8_t kMaxCode = 0x7B;
  static constexpr float kMax = 57344.0f;
  static constexpr float kOverflowAbove =
      0x1.dffffep+15f;  // 61440, the tie, rounds to even and that is above kMax
  static constexpr float kZeroUpTo = 0x1p-17f;
  static constexpr float kInfinityFrom = 65536.0f;
  static constexpr float kNanFrom = 81920.0f;
};

struct Fp8Code {
  uint8_t code;
  bool overflow;  // the rounded magnitude exceeds the largest value, or the source is infinite
};

// u: the bits of an fp32 value.
template <Elem kElem>
LF_INLINE constexpr Fp8Code fp8_encode_bits(uint32_t u) {
  using F = Fp8<kElem>;
  const uint32_t sign = u >> 24 & 0x80u;
  const uint32_t magnitude = u & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {0x7F, false};
  if (magnitude == 0x7F800000u) return {static_cast<uint8_t>(sign | F::kMaxCode), true};
  // magnitude = m * 2^(e - 23); its code counts steps of 2^(step - kMantissaBits) within the binade
  // `step`.
  const int e = magnitude < 0x00800000u ? -126 : static_cast<int>(magnitude >> 23) - 127;
  const uint32_t m = magnitude < 0x00800000u ? magnitude : (magnitude & 0x007FFFFFu) | 0x00800000u;
  const int smallest_normal = 1 - F::kBias;
  const int step = e > smallest_normal ? e : smallest_normal;
  const int drop = 23 - F::kMantissaBits + (step - e);  // bits of m below a step
  uint32_t steps = 0;
  if (drop < 26) {  // otherwise less than half a step
    const uint32_t half = uint32_t{1} << (drop - 1);
    const uint32_t rest = m & ((uint32_t{1} << drop) - 1);
    steps = m >> drop;
    if (rest > half || (rest == half && (steps & 1u) != 0)) ++steps;
  }
  // A carry into the next binade lands on its first code.
  const uint32_t code = (static_cast<uint32_t>(step - smallest_normal) << F::kMantissaBits) + steps;
  if (code > F::kMaxCode) return {static_cast<uint8_t>(sign | F::kMaxCode), true};
  return {static_cast<uint8_t>(sign | code), false};
}

// The bits of the fp32 value of a code; NaN is 0x7FC00000 with the code's sign.
template <Elem kElem>
LF_INLINE constexpr uint32_t fp8_decode_bits(uint8_t code) {
  using F = Fp8<kElem>;
  const uint32_t sign = static_cast<uint32_t>(code & 0x80u) << 24;
  const uint32_t magnitude = code & 0x7Fu;
  if (magnitude > F::kMaxCode) {
    const bool infinity = kElem == Elem::kE5M2 && magnitude == 0x7C;
    return sign | (infinity ? 0x7F800000u : 0x7FC00000u);
  }
  uint32_t exponent = magnitude >> F::kMantissaBits;
  uint32_t mantissa = magnitude & ((1u << F::kMantissaBits) - 1u);
  if (exponent == 0) {
    if (mantissa == 0) return sign;
    exponent = 1;
    int shift = 0;
    while ((mantissa >> F::kMantissaBits) == 0) {  // subnormal here, normal in fp32
      mantissa <<= 1;
      ++shift;
    }
    mantissa &= (1u << F::kMantissaBits) - 1u;
    return sign | static_cast<uint32_t>(127 - F::kBias + 1 - shift) << 23 |
           mantissa << (23 - F::kMantissaBits);
  }
  return sign | (exponent + 127 - F::kBias) << 23 | mantissa << (23 - F::kMantissaBits);
}

}  // namespace loongforge::kernels
