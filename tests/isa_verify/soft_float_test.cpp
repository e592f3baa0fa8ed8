// The reference arithmetic against this machine's scalar unit (single, double) and, for the narrow
// formats, against exhaustive search.
#include "isa_verify/soft_float.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>

namespace loongforge::isa_verify {
namespace {

template <class T, class U>
T from_bits(U bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
uint64_t bits_of(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, 4);
  return bits;
}
uint64_t bits_of(double x) {
  uint64_t bits = 0;
  std::memcpy(&bits, &x, 8);
  return bits;
}

// Random bits, with exponents near the ends and near each other more often than they would be.
template <class T>
struct Draw {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  static constexpr FloatFormat kFormat = sizeof(T) == 4 ? kSingle : kDouble;
  std::mt19937_64 random{7};

  T operator()() {
    auto bits = static_cast<Bits>(random());
    const auto mask = static_cast<Bits>(kFormat.infinity());
    switch (random() % 8) {
      case 0:
        bits &= ~mask;
        break;  // subnormal, zero
      case 1:
        bits |= mask;
        break;  // NaN
      case 2:
        bits = static_cast<Bits>((bits & ~(mask | (kFormat.fraction_mask()))) | mask);
        break;
      case 3:
      case 4:
      case 5:
        bits = static_cast<Bits>(
            (bits & ~mask) | (static_cast<Bits>(kFormat.bias() - 2 + static_cast<int>(random() % 5))
                              << kFormat.fraction_bits));
        break;
      default:
        break;
    }
    if (random() % 4 == 0) bits &= ~Bits{0} << (random() % kFormat.fraction_bits);  // ties
    return from_bits<T>(bits);
  }
};

// The same value, or both NaN: which NaN is not the compiler's promise.
template <class T>
bool same(uint64_t soft, T hard) {
  return std::isnan(hard) ? Draw<T>::kFormat.is_nan(soft) : soft == bits_of(hard);
}

template <class T>
void compare_with_hardware() {
  constexpr FloatFormat kFormat = Draw<T>::kFormat;
  const SoftFloat soft(kFormat, NanRule::kX86);
  Draw<T> draw;
  std::map<const char*, int> wrong;
  const auto check = [&](const char* what, bool right) { wrong[what] += right ? 0 : 1; };
  for (int i = 0; i < 400000; ++i) {
    // Volatile: computed by the machine, one operation at a time.
    volatile T a = draw(), b = i % 5 == 0 ? std::nextafter(T(a), T(1)) : draw(), c = draw();
    if (i % 7 == 0) c = -(a * b);
    const uint64_t x = bits_of(T(a)), y = bits_of(T(b)), z = bits_of(T(c));
    check("add", same<T>(soft.add(x, y), a + b));
    check("subtract", same<T>(soft.subtract(x, y), a - b));
    check("multiply", same<T>(soft.multiply(x, y), a * b));
    check("divide", same<T>(soft.divide(x, y), a / b));
    check("fma", same<T>(soft.fma(x, y, z), std::fma(T(a), T(b), T(c))));
    // Negations through memory: GCC 15 for LoongArch turns the whole into fma(a, b, c), whose zeros
    // differ.
    volatile T minus_a = -a, minus_c = -c;
    volatile T inner = std::fma(T(minus_a), T(b), T(minus_c));
    check("negated fma", same<T>(soft.fma(x, y, z, {true, true, true}), -inner));
    check("sqrt", same<T>(soft.sqrt(x), std::sqrt(T(a))));
    check("nearbyint",
          same<T>(soft.round_to_integral(x, Rounding::kNearestEven), std::nearbyint(T(a))));
    check("floor", same<T>(soft.round_to_integral(x, Rounding::kDown), std::floor(T(a))));
    check("ceil", same<T>(soft.round_to_integral(x, Rounding::kUp), std::ceil(T(a))));
    check("trunc", same<T>(soft.round_to_integral(x, Rounding::kZero), std::trunc(T(a))));
    check("logb", same<T>(soft.log_b(x), std::logb(T(a))));
    const Order order = soft.compare(x, y);
    check("compare", (order == Order::kLess) == (a < b) && (order == Order::kEqual) == (a == b) &&
                         (order == Order::kGreater) == (a > b));
    if (std::fabs(T(a)) < T(1e18))
      check("llrint",
            static_cast<int64_t>(to_int(kFormat, x, Rounding::kNearestEven)) == std::llrint(T(a)));
  }
  for (const auto& [what, count] : wrong) CHECK_MESSAGE(count == 0, std::string(what));
}

TEST_CASE("single and double arithmetic is the scalar unit's") {
  compare_with_hardware<float>();
  compare_with_hardware<double>();
}

TEST_CASE("conversions between single and double, and from integers") {
  const SoftFloat single(kSingle, NanRule::kX86), wide(kDouble, NanRule::kX86);
  Draw<double> draw;
  Draw<float> narrow;
  int wrong = 0;
  for (int i = 0; i < 300000; ++i) {
    volatile double d = draw();
    volatile float f = narrow();
    wrong += same<float>(single.convert_from(kDouble, bits_of(double(d))), static_cast<float>(d))
                 ? 0
                 : 1;
    wrong +=
        same<double>(wide.convert_from(kSingle, bits_of(float(f))), static_cast<double>(f)) ? 0 : 1;
    volatile auto n = static_cast<int64_t>(draw.random()) >> (i % 64);
    wrong += single.from_int(n) == bits_of(static_cast<float>(n)) ? 0 : 1;
    wrong += wide.from_int(n) == bits_of(static_cast<double>(n)) ? 0 : 1;
    const auto u = static_cast<uint64_t>(n);
    wrong += wide.from_int(static_cast<Int128>(u)) == bits_of(static_cast<double>(u)) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

// The value of a narrow float, exactly.
double value_of(FloatFormat f, uint64_t x) {
  return from_bits<double>(SoftFloat(kDouble, NanRule::kX86).convert_from(f, x));
}

TEST_CASE("halves and bfloat16: every value survives the way up and down, neighbours share ties") {
  for (const FloatFormat f : {kHalf, kBfloat16}) {
    const SoftFloat soft(f, NanRule::kX86);
    int wrong = 0;
    for (uint64_t x = 0; x < 0x10000; ++x) {
      if (f.is_nan(x)) {
        wrong += f.is_nan(soft.convert_from(kSingle,
                                            SoftFloat(kSingle, NanRule::kX86).convert_from(f, x)))
                     ? 0
                     : 1;
        continue;
      }
      const double value = value_of(f, x);
      wrong += soft.convert_from(kDouble, bits_of(value)) == x ? 0 : 1;
      if (f.is_infinite(x) || f.is_infinite(x + 1) || (x & f.sign_bit()) != 0) continue;
      // Half-way between x and x + 1: the even one; a little to either side: that one.
      const double middle = (value + value_of(f, x + 1)) / 2;
      const uint64_t even = x % 2 == 0 ? x : x + 1;
      wrong += soft.convert_from(kDouble, bits_of(middle)) == even ? 0 : 1;
      wrong += soft.convert_from(kDouble, bits_of(std::nextafter(middle, 0))) == x ? 0 : 1;
      wrong += soft.convert_from(kDouble, bits_of(std::nextafter(middle, 1e300))) == x + 1 ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
  const SoftFloat half(kHalf, NanRule::kX86);
  CHECK(half.convert_from(kDouble, bits_of(65519.0)) == 0x7BFF);
  CHECK(half.convert_from(kDouble, bits_of(65520.0)) == 0x7C00);
}

TEST_CASE("NaN rules") {
  const SoftFloat x86(kSingle, NanRule::kX86), la(kSingle, NanRule::kLoongArch);
  constexpr uint64_t kQuiet1 = 0x7FC00001, kQuiet2 = 0xFFC00002, kSignal = 0x7F800003,
                     kOne = 0x3F800000, kInfinity = 0x7F800000;
  CHECK(x86.default_nan() == 0xFFC00000);
  CHECK(la.default_nan() == 0x7FC00000);
  CHECK(x86.add(kQuiet1, kSignal) == kQuiet1);
  CHECK(la.add(kQuiet1, kSignal) == 0x7FC00003);
  CHECK(la.subtract(kOne, kQuiet2) == kQuiet2);
  CHECK(x86.fma(kQuiet1, kOne, kSignal) == kQuiet1);
  CHECK(la.fma(kQuiet1, kOne, kQuiet2) == kQuiet2);
  CHECK(la.fma(kQuiet1, kSignal, kQuiet2) == 0x7FC00003);
  CHECK(la.fma(kInfinity, 0, kQuiet1) == kQuiet1);
  CHECK(la.fma(kInfinity, 0, kOne) == 0x7FC00000);
  CHECK(la.max_num(kQuiet1, kOne, false) == kOne);
  CHECK(la.max_num(kSignal, kOne, false) == 0x7FC00003);
  CHECK(la.max_num(0, 0x80000000, false) == 0);
  CHECK(la.min_num(0, 0x80000000, false) == 0x80000000);
  CHECK(la.max_num(kOne, 0xC0000000, true) == 0xC0000000);
}

TEST_CASE("reciprocal square roots are within one step of the exact ones") {
  const SoftFloat soft(kSingle, NanRule::kLoongArch);
  Draw<float> draw;
  uint64_t worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const float x = std::fabs(draw());
    if (!(x > 0) || std::isinf(x)) continue;
    const auto exact = static_cast<float>(1.0L / std::sqrt(static_cast<long double>(x)));
    worst = std::max(worst, ulp_distance(kSingle, soft.rsqrt(bits_of(x)), bits_of(exact)));
  }
  CHECK(worst == 0);
  CHECK(soft.rsqrt(0x80000000) == 0xFF800000);
  CHECK(soft.rsqrt(0xBF800000) == soft.default_nan());
}

TEST_CASE("classes, distances, integers out of range") {
  CHECK(float_class(kSingle, 0x7F800001) == 1);
  CHECK(float_class(kSingle, 0x7FC00000) == 2);
  CHECK(float_class(kSingle, 0xFF800000) == 4);
  CHECK(float_class(kSingle, 0xBF800000) == 8);
  CHECK(float_class(kSingle, 0x80000001) == 16);
  CHECK(float_class(kSingle, 0x80000000) == 32);
  CHECK(float_class(kSingle, 0x7F800000) == 64);
  CHECK(float_class(kSingle, 0x3F800000) == 128);
  CHECK(float_class(kSingle, 1) == 256);
  CHECK(float_class(kSingle, 0) == 512);
  CHECK(ulp_distance(kSingle, 0x80000001, 1) == 2);
  CHECK(ulp_distance(kSingle, 0x80000000, 0) == 0);
  CHECK(ulp_distance(kSingle, 0x3F800000, 0x3F7FFFFF) == 1);
  CHECK(ulp_distance(kSingle, 0x7FC00000, 1) == ~uint64_t{0});
  CHECK(ulp_distance(kSingle, 0x7FC00000, 0xFFC00001) == 0);
  CHECK(to_int(kSingle, 0x7F800000, Rounding::kZero) == Int128{1} << 100);
  CHECK(to_int(kSingle, 0x7FC00000, Rounding::kZero) == 0);
}

}  // namespace
}  // namespace loongforge::isa_verify
