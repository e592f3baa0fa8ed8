#include "isa_verify/soft_float.h"

#include <algorithm>
#include <bit>

namespace loongforge::isa_verify {
namespace {

int top_bit(Uint128 x) {  // REQUIRES x != 0
  const auto high = static_cast<uint64_t>(x >> 64);
  return high != 0 ? 127 - std::countl_zero(high) : 63 - std::countl_zero(static_cast<uint64_t>(x));
}

// x >> n; *sticky is set where ones fell off.
Uint128 shift_right(Uint128 x, int n, bool* sticky) {
  if (n <= 0) return x << -n;
  if (n > 127) {
    *sticky = *sticky || x != 0;
    return 0;
  }
  *sticky = *sticky || (x & ((Uint128{1} << n) - 1)) != 0;
  return x >> n;
}

// The largest r with r * r <= x.
Uint128 integer_sqrt(Uint128 x) {
  Uint128 root = 0;
  for (Uint128 bit = Uint128{1} << 126; bit != 0; bit >>= 2) {
    if (x >= root + bit) {
      x -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return root;
}

}  // namespace

uint64_t SoftFloat::default_nan() const {
  return f_.infinity() | f_.quiet_bit() | signed_zero(rule_ == NanRule::kX86);
}

uint64_t SoftFloat::nan_of(uint64_t a, uint64_t b) const {
  if (rule_ == NanRule::kLoongArch) {
    if (f_.is_signalling(a)) return quiet(a);
    if (f_.is_signalling(b)) return quiet(b);
  }
  return quiet(f_.is_nan(a) ? a : b);
}

uint64_t SoftFloat::nan_of(uint64_t a, uint64_t b, uint64_t c) const {
  if (rule_ == NanRule::kX86) return quiet(f_.is_nan(a) ? a : f_.is_nan(b) ? b : c);
  for (const uint64_t x : {c, a, b})
    if (f_.is_signalling(x)) return quiet(x);
  return quiet(f_.is_nan(c) ? c : f_.is_nan(a) ? a : b);
}

SoftFloat::Parts SoftFloat::unpack(uint64_t a) const {
  const auto field = static_cast<int>((a & f_.infinity()) >> f_.fraction_bits);
  const uint64_t fraction = a & f_.fraction_mask();
  const int exponent = std::max(field, 1) - f_.bias() - f_.fraction_bits;
  const uint64_t hidden = field > 0 ? uint64_t{1} << f_.fraction_bits : 0;
  return {is_negative(a), exponent, fraction | hidden};
}

uint64_t SoftFloat::pack(bool negative, int exponent, Uint128 significand, bool sticky) const {
  // As one bit more below, the sticky bit takes part in the comparison with a half.
  significand = significand << 1 | (sticky ? 1 : 0);
  --exponent;
  const int lowest = 1 - f_.bias();
  const int unit = std::max(exponent + top_bit(significand), lowest) - f_.fraction_bits;
  const int shift = unit - exponent;
  Uint128 kept = 0;
  if (shift <= 0) {
    kept = significand << -shift;
  } else if (shift <= 127) {
    const Uint128 rest = significand & ((Uint128{1} << shift) - 1),
                  half = Uint128{1} << (shift - 1);
    kept = significand >> shift;
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  }
  // A significand that reached the next power of two carries into the exponent by itself.
  const int field = unit + f_.fraction_bits + f_.bias();
  const auto fraction = static_cast<uint64_t>(kept);
  const uint64_t hidden = uint64_t{1} << f_.fraction_bits;
  if (fraction < hidden) return signed_zero(negative) | fraction;  // subnormal
  if (field > 2 * f_.bias()) return signed_infinity(negative);
  const uint64_t magnitude =
      (static_cast<uint64_t>(field) << f_.fraction_bits) + (fraction - hidden);
  return signed_zero(negative) | std::min(magnitude, f_.infinity());
}

uint64_t SoftFloat::sum(Parts a, Parts b) const {
  if (a.significand == 0) std::swap(a, b);
  bool sticky = false;
  if (b.significand != 0) {
    constexpr int kTop = 124;  // leaves the carry of the sum and pack()'s extra bit
    for (Parts* x : {&a, &b}) {
      const int up = kTop - top_bit(x->significand);
      x->significand <<= up;
      x->exponent -= up;
    }
    if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand))
      std::swap(a, b);
    b.significand = shift_right(b.significand, a.exponent - b.exponent, &sticky);
    if (a.negative == b.negative) {
      a.significand += b.significand;
    } else {
      a.significand -= b.significand;
      if (sticky) --a.significand;  // the exact value is a little above what is left
    }
    if (a.significand == 0) return signed_zero(false);  // exact: to nearest, x - x is +0
  }
  return pack(a.negative, a.exponent, a.significand, sticky);
}

uint64_t SoftFloat::add(uint64_t a, uint64_t b) const {
  if (f_.is_nan(a) || f_.is_nan(b)) return nan_of(a, b);
  if (f_.is_infinite(a))
    return f_.is_infinite(b) && is_negative(a) != is_negative(b) ? default_nan() : a;
  if (f_.is_infinite(b)) return b;
  if (f_.is_zero(a) && f_.is_zero(b)) return a & b;  // -0 of two -0 only
  return sum(unpack(a), unpack(b));
}

uint64_t SoftFloat::subtract(uint64_t a, uint64_t b) const {
  if (f_.is_nan(a) || f_.is_nan(b)) return nan_of(a, b);
  return add(a, b ^ f_.sign_bit());
}

uint64_t SoftFloat::multiply(uint64_t a, uint64_t b) const {
  if (f_.is_nan(a) || f_.is_nan(b)) return nan_of(a, b);
  const bool negative = is_negative(a) != is_negative(b);
  if (f_.is_infinite(a) || f_.is_infinite(b))
    return f_.is_zero(a) || f_.is_zero(b) ? default_nan() : signed_infinity(negative);
  if (f_.is_zero(a) || f_.is_zero(b)) return signed_zero(negative);
  const Parts x = unpack(a), y = unpack(b);
  return pack(negative, x.exponent + y.exponent, x.significand * y.significand, false);
}

uint64_t SoftFloat::divide(uint64_t a, uint64_t b) const {
  if (f_.is_nan(a) || f_.is_nan(b)) return nan_of(a, b);
  const bool negative = is_negative(a) != is_negative(b);
  if (f_.is_infinite(a)) return f_.is_infinite(b) ? default_nan() : signed_infinity(negative);
  if (f_.is_infinite(b)) return signed_zero(negative);
  if (f_.is_zero(b)) return f_.is_zero(a) ? default_nan() : signed_infinity(negative);
  if (f_.is_zero(a)) return signed_zero(negative);
  Parts x = unpack(a);
  const Parts y = unpack(b);
  const int up = 124 - top_bit(x.significand);
  x.significand <<= up;
  return pack(negative, x.exponent - up - y.exponent, x.significand / y.significand,
              x.significand % y.significand != 0);
}

uint64_t SoftFloat::fma(uint64_t a, uint64_t b, uint64_t c, FmaSigns signs) const {
  if (f_.is_nan(a) || f_.is_nan(b) || f_.is_nan(c)) return nan_of(a, b, c);
  const bool product_negative = (is_negative(a) != is_negative(b)) != signs.negate_product;
  if (signs.negate_c) c ^= f_.sign_bit();
  const uint64_t flip = signs.negate_result ? f_.sign_bit() : 0;
  const bool infinite = f_.is_infinite(a) || f_.is_infinite(b);
  const bool zero = f_.is_zero(a) || f_.is_zero(b);
  if (infinite && zero) return default_nan();
  if (infinite) {
    if (f_.is_infinite(c) && is_negative(c) != product_negative) return default_nan();
    return signed_infinity(product_negative) ^ flip;
  }
  if (f_.is_infinite(c)) return c ^ flip;
  if (zero && f_.is_zero(c)) return (signed_zero(product_negative) & c) ^ flip;
  if (zero) return c ^ flip;
  const Parts x = unpack(a), y = unpack(b);
  return sum({product_negative, x.exponent + y.exponent, x.significand * y.significand},
             unpack(c)) ^
         flip;
}

uint64_t SoftFloat::sqrt(uint64_t a) const {
  if (f_.is_nan(a)) return quiet(a);
  if (f_.is_zero(a)) return a;
  if (is_negative(a)) return default_nan();
  if (f_.is_infinite(a)) return a;
  Parts x = unpack(a);
  int up = 124 - top_bit(x.significand);
  if ((x.exponent - up) % 2 != 0) --up;
  x.significand <<= up;
  const Uint128 root = integer_sqrt(x.significand);
  return pack(false, (x.exponent - up) / 2, root, root * root != x.significand);
}

uint64_t SoftFloat::rsqrt(uint64_t a) const {
  if (f_.is_nan(a)) return quiet(a);
  if (f_.is_zero(a)) return signed_infinity(is_negative(a));
  if (is_negative(a)) return default_nan();
  if (f_.is_infinite(a)) return 0;
  Parts x = unpack(a);
  int up = 124 - top_bit(x.significand);
  if ((x.exponent - up) % 2 != 0) --up;
  const Uint128 square = x.significand << up, root = integer_sqrt(square);
  const Uint128 one = Uint128{1} << 125;
  return pack(false, -(x.exponent - up) / 2 - 125, one / root,
              one % root != 0 || root * root != square);
}

Order SoftFloat::compare(uint64_t a, uint64_t b) const {
  if (f_.is_nan(a) || f_.is_nan(b)) return Order::kUnordered;
  if (f_.is_zero(a) && f_.is_zero(b)) return Order::kEqual;
  if (a == b) return Order::kEqual;
  if (is_negative(a) != is_negative(b)) return is_negative(a) ? Order::kLess : Order::kGreater;
  return (a < b) != is_negative(a) ? Order::kLess : Order::kGreater;
}

uint64_t SoftFloat::extreme(uint64_t a, uint64_t b, bool by_magnitude, Order wanted) const {
  if (f_.is_signalling(a) || f_.is_signalling(b) || (f_.is_nan(a) && f_.is_nan(b)))
    return nan_of(a, b);
  if (f_.is_nan(a)) return b;
  if (f_.is_nan(b)) return a;
  if (by_magnitude) {
    const Order order = compare(a & ~f_.sign_bit(), b & ~f_.sign_bit());
    if (order != Order::kEqual) return order == wanted ? a : b;
  }
  const Order order = compare(a, b);
  if (order == Order::kEqual)  // only zeros differ in their bits
    return wanted == Order::kGreater ? a & b : a | b;
  return order == wanted ? a : b;
}

uint64_t SoftFloat::max_num(uint64_t a, uint64_t b, bool by_magnitude) const {
  return extreme(a, b, by_magnitude, Order::kGreater);
}

uint64_t SoftFloat::min_num(uint64_t a, uint64_t b, bool by_magnitude) const {
  return extreme(a, b, by_magnitude, Order::kLess);
}

uint64_t SoftFloat::round_to_integral(uint64_t a, Rounding rounding) const {
  if (f_.is_nan(a)) return quiet(a);
  if (f_.is_infinite(a) || f_.is_zero(a)) return a;
  if (unpack(a).exponent >= 0) return a;
  const uint64_t rounded = from_int(to_int(f_, a, rounding));
  return rounded | signed_zero(is_negative(a));
}

uint64_t SoftFloat::log_b(uint64_t a) const {
  if (f_.is_nan(a)) return quiet(a);
  if (f_.is_infinite(a)) return f_.infinity();
  if (f_.is_zero(a)) return signed_infinity(true);
  const Parts x = unpack(a);
  return from_int(x.exponent + top_bit(x.significand));
}

uint64_t SoftFloat::from_int(Int128 value) const {
  if (value == 0) return 0;
  const bool negative = value < 0;
  bool sticky = false;
  const Uint128 magnitude = negative ? -static_cast<Uint128>(value) : static_cast<Uint128>(value);
  const int down = std::max(top_bit(magnitude) - 124, 0);
  return pack(negative, down, shift_right(magnitude, down, &sticky), sticky);
}

uint64_t SoftFloat::convert_from(FloatFormat from, uint64_t a) const {
  const SoftFloat other(from, rule_);
  const bool negative = other.is_negative(a);
  if (from.is_nan(a)) {
    const uint64_t fraction = a & from.fraction_mask();
    const int up = f_.fraction_bits - from.fraction_bits;
    return quiet(signed_infinity(negative) | (up >= 0 ? fraction << up : fraction >> -up));
  }
  if (from.is_infinite(a)) return signed_infinity(negative);
  if (from.is_zero(a)) return signed_zero(negative);
  const Parts x = other.unpack(a);
  return pack(negative, x.exponent, x.significand, false);
}

Int128 to_int(FloatFormat format, uint64_t a, Rounding rounding) {
  if (format.is_nan(a) || format.is_zero(a)) return 0;
  const bool negative = (a & format.sign_bit()) != 0;
  const Int128 limit = Int128{1} << 100;
  const auto field = static_cast<int>((a & format.infinity()) >> format.fraction_bits);
  const int exponent = std::max(field, 1) - format.bias() - format.fraction_bits;
  const Uint128 significand =
      (a & format.fraction_mask()) | (field > 0 ? uint64_t{1} << format.fraction_bits : 0);
  if (exponent + top_bit(significand) >= 100) return negative ? -limit : limit;
  if (exponent >= 0)
    return negative ? -static_cast<Int128>(significand << exponent)
                    : static_cast<Int128>(significand << exponent);
  const int shift = std::min(-exponent, 127);
  Uint128 kept = significand >> shift;
  const Uint128 rest = significand & ((Uint128{1} << shift) - 1), half = Uint128{1} << (shift - 1);
  bool up = false;
  switch (rounding) {
    case Rounding::kNearestEven:
      up = rest > half || (rest == half && (kept & 1) != 0);
      break;
    case Rounding::kZero:
      break;
    case Rounding::kUp:
      up = rest != 0 && !negative;
      break;
    case Rounding::kDown:
      up = rest != 0 && negative;
      break;
  }
  if (up) ++kept;
  return negative ? -static_cast<Int128>(kept) : static_cast<Int128>(kept);
}

unsigned float_class(FloatFormat format, uint64_t a) {
  if (format.is_nan(a)) return format.is_signalling(a) ? 1 : 2;
  const int base = (a & format.sign_bit()) != 0 ? 2 : 6;
  const int kind = format.is_infinite(a)    ? 0
                   : format.is_zero(a)      ? 3
                   : format.is_subnormal(a) ? 2
                                            : 1;
  return 1u << (base + kind);
}

uint64_t ulp_distance(FloatFormat format, uint64_t a, uint64_t b) {
  if (format.is_nan(a) || format.is_nan(b))
    return format.is_nan(a) && format.is_nan(b) ? 0 : ~uint64_t{0};
  // On one line: negative values below zero, both zeros at zero.
  const auto place = [&](uint64_t x) {
    const auto magnitude = static_cast<Int128>(x & ~format.sign_bit());
    return (x & format.sign_bit()) != 0 ? -magnitude : magnitude;
  };
  const Int128 distance = place(a) - place(b);
  return static_cast<uint64_t>(distance < 0 ? -distance : distance);
}

}  // namespace loongforge::isa_verify
