// The formats against their definition (computed here, in double) and against PyTorch's
// conversions.
#include "kernels/fp8_format.h"

#include <fstream>
#include <map>
#include <string>

#include "kernels/kernel_test.h"
#include "support/data.h"

namespace loongforge::kernels {
namespace {

using test::bits_of;
using test::float_of;

// Facts of the formats that hold at compile time.
static_assert(fp8_decode_bits<Elem::kE4M3>(0x7E) == 0x41600000u);  // 14
static_assert(fp8_decode_bits<Elem::kE4M3>(0x01) == static_cast<uint32_t>(127 - 14) << 23);
static_assert(fp8_decode_bits<Elem::kE4M3>(0x08) == static_cast<uint32_t>(127 - 11) << 23);
static_assert(fp8_decode_bits<Elem::kE4M3>(0xFF) == 0xFFC00000u);
static_assert(fp8_decode_bits<Elem::kE5M2>(0x7B) == 0x47600000u);  // 57344
static_assert(fp8_decode_bits<Elem::kE5M2>(0x01) == static_cast<uint32_t>(127 - 16) << 23);
static_assert(fp8_decode_bits<Elem::kE5M2>(0xFC) == 0xFF800000u);
static_assert(fp8_encode_bits<Elem::kE4M3>(0x80000000u).code == 0x80);
static_assert(fp8_encode_bits<Elem::kE4M3>(0x7F800000u).code == 0x7E &&
              fp8_encode_bits<Elem::kE4M3>(0x7F800000u).overflow);
static_assert(fp8_encode_bits<Elem::kE4M3>(0xFFC00000u).code == 0x7F &&
              !fp8_encode_bits<Elem::kE4M3>(0xFFC00000u).overflow);
constexpr bool every_code_survives_encoding() {
  for (int code = 0; code < 256; ++code) {
    const auto c = static_cast<uint8_t>(code);
    if ((c & 0x7F) <= Fp8<Elem::kE4M3>::kMaxCode) {
      const Fp8Code back = fp8_encode_bits<Elem::kE4M3>(fp8_decode_bits<Elem::kE4M3>(c));
      if (back.code != c || back.overflow) return false;
    }
    if ((c & 0x7F) <= Fp8<Elem::kE5M2>::kMaxCode) {
      const Fp8Code back = fp8_encode_bits<Elem::kE5M2>(fp8_decode_bits<Elem::kE5M2>(c));
      if (back.code != c || back.overflow) return false;
    }
  }
  return true;
}
static_assert(every_code_survives_encoding());

// The value that the definition gives a code.
double defined_value(int code, int bias, int mantissa_bits) {
  const int exponent = (code & 0x7F) >> mantissa_bits;
  const double mantissa = std::ldexp(code & ((1 << mantissa_bits) - 1), -mantissa_bits);
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias) : std::ldexp(1.0 + mantissa, exponent - bias);
  return code >= 0x80 ? -magnitude : magnitude;
}

template <Elem kElem>
void check_against_definition() {
  using F = Fp8<kElem>;
  for (int code = 0; code < 256; ++code) {
    const float got = float_of(fp8_decode_bits<kElem>(static_cast<uint8_t>(code)));
    if ((code & 0x7F) <= F::kMaxCode) {
      CHECK(static_cast<double>(got) == defined_value(code, F::kBias, F::kMantissaBits));
    } else if (kElem == Elem::kE5M2 && (code & 0x7F) == 0x7C) {
      CHECK(std::isinf(got));
    } else {
      CHECK(std::isnan(got));
    }
    CHECK(std::signbit(got) == (code >= 0x80));
  }
  // Around every midpoint: the tie goes to the even code, its two neighbours to the nearer one.
  for (int code = 0; code < F::kMaxCode; ++code) {
    const double a = defined_value(code, F::kBias, F::kMantissaBits);
    const double b = defined_value(code + 1, F::kBias, F::kMantissaBits);
    const float middle = static_cast<float>((a + b) / 2);
    REQUIRE(static_cast<double>(middle) == (a + b) / 2);
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const auto of = [&](float x) { return fp8_encode_bits<kElem>(bits_of(x) | sign); };
      const int s = sign != 0 ? 0x80 : 0;
      CHECK(of(middle).code == (s | (code % 2 == 0 ? code : code + 1)));
      CHECK(of(std::nextafter(middle, 0.0f)).code == (s | code));
      CHECK(of(std::nextafter(middle, 1e9f)).code == (s | (code + 1)));
      CHECK_FALSE(of(middle).overflow);
    }
  }
  CHECK(fp8_encode_bits<kElem>(bits_of(F::kOverflowAbove)).code == F::kMaxCode);
  CHECK_FALSE(fp8_encode_bits<kElem>(bits_of(F::kOverflowAbove)).overflow);
  CHECK(fp8_encode_bits<kElem>(bits_of(std::nextafter(F::kOverflowAbove, 1e9f))).code ==
        F::kMaxCode);
  CHECK(fp8_encode_bits<kElem>(bits_of(std::nextafter(F::kOverflowAbove, 1e9f))).overflow);
  CHECK(fp8_encode_bits<kElem>(bits_of(F::kZeroUpTo)).code == 0);
  CHECK(fp8_encode_bits<kElem>(bits_of(std::nextafter(F::kZeroUpTo, 1.0f))).code == 1);
  CHECK(fp8_encode_bits<kElem>(1).code == 0);               // the smallest fp32 subnormal
  CHECK(fp8_encode_bits<kElem>(0x807FFFFFu).code == 0x80);  // the largest, negative
}

TEST_CASE("fp8_format: E4M3-LA is what its definition says") {
  check_against_definition<Elem::kE4M3>();
}
TEST_CASE("fp8_format: E5M2 is what its definition says") {
  check_against_definition<Elem::kE5M2>();
}

// Just enough of safetensors: an 8-byte length, a JSON header of {"name": {..., "data_offsets": [a,
// b]}}, data.
std::string tensor_bytes(const std::string& file, const std::string& name) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  const std::string header = file.substr(8, length);
  const size_t entry = header.find("\"" + name + "\"");
  REQUIRE(entry != std::string::npos);
  const size_t offsets = header.find('[', header.find("\"data_offsets\"", entry));
  size_t used = 0;
  const size_t first = std::stoul(header.substr(offsets + 1), &used);
  const size_t last = std::stoul(header.substr(header.find(',', offsets) + 1));
  return file.substr(8 + length + first, last - first);
}

template <Elem kElem>
void check_against_golden(const std::string& name, float to_ours) {
  std::ifstream in(loongforge::test::data_dir() / "kernels" / "fp8_codec.safetensors",
                   std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  REQUIRE(file.size() > 8);
  const std::string decoded = tensor_bytes(file, name + "_decode");
  const std::string inputs = tensor_bytes(file, name + "_in");
  const std::string codes = tensor_bytes(file, name + "_out");
  REQUIRE(decoded.size() == 256 * 4);
  REQUIRE(inputs.size() == codes.size() * 4);
  for (size_t c = 0; c < 256; ++c) {
    float want;
    std::memcpy(&want, &decoded[c * 4], 4);
    const float got = float_of(fp8_decode_bits<kElem>(static_cast<uint8_t>(c)));
    if (std::isnan(want)) {
      CHECK(std::isnan(got));
    } else {
      CHECK(bits_of(got) == bits_of(want * to_ours));
    }
  }
  for (size_t i = 0; i < codes.size(); ++i) {
    float x;
    std::memcpy(&x, &inputs[i * 4], 4);
    const float ours = x * to_ours;
    // Exact, except for what is 0 in either form.
    if (std::isfinite(x) && std::fabs(x) > 0x1p-120f) REQUIRE(ours / to_ours == x);
    CHECK(fp8_encode_bits<kElem>(bits_of(ours)).code == static_cast<uint8_t>(codes[i]));
  }
}

TEST_CASE("fp8_format: E4M3-LA is PyTorch's float8_e4m3fn times 2^-5, code for code") {
  check_against_golden<Elem::kE4M3>("e4m3", 0x1p-5f);
}
TEST_CASE("fp8_format: E5M2 is PyTorch's float8_e5m2, saturating") {
  check_against_golden<Elem::kE5M2>("e5m2", 1.0f);
}

}  // namespace
}  // namespace loongforge::kernels
