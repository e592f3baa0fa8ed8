#include "tensor/convert.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace loongforge::tensor;

namespace {

// IEEE 754 by its definition, in double: sign, exponent of `exponent_bits`, mantissa of
// `mantissa_bits`.
double value_of(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>((bits >> mantissa_bits) & ((1u << exponent_bits) - 1));
  const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1u << mantissa_bits), exponent - bias - mantissa_bits);
}

// Every code decodes to its defined value, and encodes back to itself; every midpoint between
// neighbours goes to the even one, and its fp32 neighbours to the nearer one.
void check_format(int exponent_bits, int mantissa_bits, float (*decode)(uint16_t) noexcept,
                  uint16_t (*encode)(float) noexcept) {
  const uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  int wrong = 0;
  for (uint32_t code = 0; code <= 0xffff; ++code) {
    const double expected = value_of(code, exponent_bits, mantissa_bits);
    const float got = decode(static_cast<uint16_t>(code));
    if (std::isnan(expected)) {
      if (!std::isnan(got) || !std::isnan(decode(encode(got)))) ++wrong;
      if (std::signbit(got) != ((code & 0x8000u) != 0)) ++wrong;
      continue;
    }
    if (static_cast<double>(got) != expected || std::signbit(got) != std::signbit(expected))
      ++wrong;
    if (encode(got) != code) ++wrong;
    if ((code & 0x7fffu) >= infinity) continue;
    // The next code in magnitude; beyond the largest number it stands for infinity, at the place
    // the format would continue.
    const double next = (code & 0x7fffu) + 1 == infinity
                            ? 2 * expected - value_of(code - 1, exponent_bits, mantissa_bits)
                            : value_of(code + 1, exponent_bits, mantissa_bits);
    const float middle = static_cast<float>((expected + next) / 2);
    if (static_cast<double>(middle) != (expected + next) / 2)
      continue;  // not an fp32 number: no tie to test
    const uint32_t even = (code & 1u) == 0 ? code : code + 1;
    if (encode(middle) != even) ++wrong;
    if (encode(std::nextafterf(middle, 0.0f)) != code) ++wrong;
    if (encode(std::nextafterf(
            middle, std::copysign(std::numeric_limits<float>::infinity(), middle))) != code + 1)
      ++wrong;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("convert: every F16 code and midpoint") {
  check_format(5, 10, f16_bits_to_f32, f32_to_f16_bits);
}

TEST_CASE("convert: every BF16 code and midpoint") {
  check_format(8, 7, bf16_bits_to_f32, f32_to_bf16_bits);
}

TEST_CASE("convert: known values") {
  CHECK(f32_to_f16_bits(1.0f) == 0x3c00);
  CHECK(f32_to_f16_bits(65504.0f) == 0x7bff);
  CHECK(f32_to_f16_bits(65519.0f) == 0x7bff);
  CHECK(f32_to_f16_bits(65520.0f) == 0x7c00);
  CHECK(f32_to_f16_bits(-1e10f) == 0xfc00);
  CHECK(f32_to_f16_bits(0x1p-25f) == 0x0000);  // a tie with 0
  CHECK(f32_to_f16_bits(0x1.000002p-25f) == 0x0001);
  CHECK(f32_to_f16_bits(-0.0f) == 0x8000);
  CHECK(f32_to_bf16_bits(1.0f) == 0x3f80);
  CHECK(f32_to_bf16_bits(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(f32_to_bf16_bits(std::bit_cast<float>(0x7f800001u)) ==
        0x7fc0);  // a signalling NaN must not become infinity
  CHECK(f32_to_f16_bits(std::bit_cast<float>(0xff800001u)) == 0xfe00);
}

TEST_CASE("convert: arrays of any length and alignment equal the single conversions") {
  std::mt19937 random(7);
  for (size_t n : {0, 1, 3, 7, 8, 15, 16, 17, 33, 257}) {
    std::vector<float> in(n), out(n);
    for (float& x : in) x = std::bit_cast<float>(static_cast<uint32_t>(random()) & 0xbfffffffu);
    for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
      std::vector<uint8_t> bytes(n * 4 + 1);
      from_f32(dtype, in.data(), n, bytes.data() + 1);
      to_f32(dtype, bytes.data() + 1, n, out.data());
      for (size_t i = 0; i < n; ++i) {
        const float expected = dtype == DType::kF32   ? in[i]
                               : dtype == DType::kF16 ? f16_bits_to_f32(f32_to_f16_bits(in[i]))
                                                      : bf16_bits_to_f32(f32_to_bf16_bits(in[i]));
        CHECK(std::bit_cast<uint32_t>(out[i]) == std::bit_cast<uint32_t>(expected));
      }
    }
  }
  const double doubles[] = {1.0, 1e-300, -1e300, 0.1};
  float floats[4];
  to_f32(DType::kF64, doubles, 4, floats);
  CHECK(floats[0] == 1.0f);
  CHECK(floats[1] == 0.0f);
  CHECK(floats[2] == -std::numeric_limits<float>::infinity());
  CHECK(floats[3] == 0.1f);
  CHECK_FALSE(converts_to_f32(DType::kI64));
  CHECK_FALSE(converts_from_f32(DType::kF8E4M3));
}
