// IEEE 754 arithmetic in integers: what vector floating-point instructions are measured against, so
// that no floating-point unit judges itself. Binary formats up to 64 bits; a value is its bits.
// Rounding is to nearest even where no Rounding is named; subnormals are kept; no exception flags.
//
// NaN rules: kX86 takes the first NaN operand in the order a, b, c and makes it quiet; kLoongArch
// takes the first signalling one in the order c, a, b (a, b where there is no c), else the first
// quiet one in that order. The default NaN is quiet with an empty payload, negative on x86.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

namespace loongforge::isa_verify {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

struct FloatFormat {
  int exponent_bits;
  int fraction_bits;

  constexpr int bits() const { return 1 + exponent_bits + fraction_bits; }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint64_t sign_bit() const { return uint64_t{1} << (bits() - 1); }
  constexpr uint64_t quiet_bit() const { return uint64_t{1} << (fraction_bits - 1); }
  constexpr uint64_t fraction_mask() const { return (uint64_t{1} << fraction_bits) - 1; }
  constexpr uint64_t infinity() const {
    return ((uint64_t{1} << exponent_bits) - 1) << fraction_bits;
  }
  constexpr bool is_nan(uint64_t x) const { return (x & ~sign_bit()) > infinity(); }
  constexpr bool is_signalling(uint64_t x) const { return is_nan(x) && (x & quiet_bit()) == 0; }
  constexpr bool is_infinite(uint64_t x) const { return (x & ~sign_bit()) == infinity(); }
  constexpr bool is_zero(uint64_t x) const { return (x & ~sign_bit()) == 0; }
  constexpr bool is_subnormal(uint64_t x) const { return !is_zero(x) && (x & infinity()) == 0; }
  friend constexpr bool operator==(const FloatFormat&, const FloatFormat&) = default;
};

inline constexpr FloatFormat kHalf{5, 10};
inline constexpr FloatFormat kBfloat16{8, 7};
inline constexpr FloatFormat kSingle{8, 23};
inline constexpr FloatFormat kDouble{11, 52};

enum class NanRule : uint8_t { kX86, kLoongArch };
enum class Rounding : uint8_t { kNearestEven, kZero, kUp, kDown };
enum class Order : uint8_t { kLess, kEqual, kGreater, kUnordered };

// What is done with the exact a * b + c of fma(): signs changed before the one rounding, or of the
// result after it. A NaN keeps its sign.
struct FmaSigns {
  bool negate_product = false, negate_c = false, negate_result = false;
};

class SoftFloat {
 public:
  constexpr SoftFloat(FloatFormat format, NanRule rule) : f_(format), rule_(rule) {}

  uint64_t add(uint64_t a, uint64_t b) const;
  uint64_t subtract(uint64_t a, uint64_t b) const;
  uint64_t multiply(uint64_t a, uint64_t b) const;
  uint64_t divide(uint64_t a, uint64_t b) const;
  uint64_t fma(uint64_t a, uint64_t b, uint64_t c, FmaSigns signs = {}) const;
  uint64_t sqrt(uint64_t a) const;
  uint64_t rsqrt(uint64_t a) const;  // of the exact value to 60 bits, then rounded
  // IEEE 754-2008 maxNum and minNum: a quiet NaN gives way to a number, +0 is above -0.
  // by_magnitude: maxNumMag, minNumMag.
  uint64_t max_num(uint64_t a, uint64_t b, bool by_magnitude) const;
  uint64_t min_num(uint64_t a, uint64_t b, bool by_magnitude) const;
  uint64_t round_to_integral(uint64_t a, Rounding rounding) const;
  uint64_t log_b(uint64_t a) const;  // the exponent of |a|; zero gives -infinity
  uint64_t from_int(Int128 value) const;
  uint64_t convert_from(FloatFormat from, uint64_t a) const;
  Order compare(uint64_t a, uint64_t b) const;
  uint64_t default_nan() const;
  uint64_t quiet(uint64_t nan) const { return nan | f_.quiet_bit(); }

 private:
  struct Parts {  // a finite value: significand * 2^exponent
    bool negative;
    int exponent;
    Uint128 significand;
  };
  Parts unpack(uint64_t a) const;
  // significand * 2^exponent rounded; sticky: the exact value is a little above. REQUIRES two bits
  // more than the format keeps where sticky is set; significand != 0.
  uint64_t pack(bool negative, int exponent, Uint128 significand, bool sticky) const;
  uint64_t sum(Parts a, Parts b) const;  // of two values that are not both zero
  uint64_t nan_of(uint64_t a, uint64_t b) const;
  uint64_t nan_of(uint64_t a, uint64_t b, uint64_t c) const;
  uint64_t extreme(uint64_t a, uint64_t b, bool by_magnitude, Order wanted) const;
  uint64_t signed_zero(bool negative) const { return negative ? f_.sign_bit() : 0; }
  uint64_t signed_infinity(bool negative) const { return signed_zero(negative) | f_.infinity(); }
  bool is_negative(uint64_t a) const { return (a & f_.sign_bit()) != 0; }

  FloatFormat f_;
  NanRule rule_;
};

// The integer nearest to a under the rounding, held within +-2^100; 0 for a NaN.
Int128 to_int(FloatFormat format, uint64_t a, Rounding rounding);

// Ten classes, one bit each: signalling NaN, quiet NaN, then -infinity, -normal, -subnormal, -0,
// and the same positive.
unsigned float_class(FloatFormat format, uint64_t a);

// Steps between neighbouring values from a to b (over zero as well); the largest uint64_t where
// exactly one of them is a NaN, 0 where both are.
uint64_t ulp_distance(FloatFormat format, uint64_t a, uint64_t b);

}  // namespace loongforge::isa_verify
