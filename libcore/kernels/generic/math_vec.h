// exp and what is made of it, on any V. Only +, -, *, /, fma, comparisons and integer shifts: the
// same bits on every ISA.
#pragma once

#include "kernels/types.h"

namespace loongforge::kernels::generic {
namespace {

// e^x. Within 1 ulp; results below 2^-126 are 0, above the largest float infinity; exp(-inf) = 0,
// NaN passes, exp(0) = 1. x = k ln 2 + r, |r| <= ln 2 / 2; e^r by a degree 6 minimax polynomial
// (relative error 3.1e-9, its first two coefficients fixed to 1); k goes straight into the exponent
// bits.
template <class V>
LF_INLINE V exp(V x) {
  const V magic =
      V::set1(12582912.0f);  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const V shifted = V::fma(x, V::set1(0x1.715476p+0f), magic);
  const V k = shifted - magic;
  V r = V::fma(k, V::set1(-0x1.62e400p-1f), x);  // ln 2 in two parts, k times the first is exact
  r = V::fma(k, V::set1(-0x1.7f7d1cp-20f), r);
  V p = V::set1(0x1.6a2444p-10f);
  p = V::fma(p, r, V::set1(0x1.1239e2p-7f));
  p = V::fma(p, r, V::set1(0x1.5558f2p-5f));
  p = V::fma(p, r, V::set1(0x1.555492p-3f));
  p = V::fma(p, r, V::set1(0x1.fffffcp-2f));
  p = V::fma(p, r, V::set1(1.0f));
  p = V::fma(p, r, V::set1(1.0f));
  // The magic's own low bits are 0, so shifting it out leaves k * 2^23. Outside the limits the sum
  // is meaningless.
  const V scaled = V::add_int(p, V::template shift_left<23>(shifted));
  const V above = x + V::set1(__builtin_inff());  // infinity, and NaN where x is NaN
  const V y = V::select_lt(x, V::set1(0x1.62e430p+6f), scaled, above);  // 128 ln 2, rounded up
  return V::select_lt(x, V::set1(-0x1.5d589ep+6f), V::zero(), y);       // -126 ln 2
}

// 1 / (1 + e^-x)
template <class V>
LF_INLINE V sigmoid(V x) {
  const V one = V::set1(1.0f);
  return one / (one + exp(V::zero() - x));
}

}  // namespace
}  // namespace loongforge::kernels::generic
