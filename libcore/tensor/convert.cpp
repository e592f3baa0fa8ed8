#include "tensor/convert.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace loongforge::tensor {
namespace {

static_assert(std::endian::native == std::endian::little, "stored tensors are little-endian");

template <class T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void store(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// Branch-free, so that the loops below vectorise. The exponent and mantissa bits, moved into fp32's
// places, read as a number 2^-112 times too small, subnormals included; the product with 2^112 is
// exact. Infinities and NaNs get the exponent of fp32's instead.
inline float decode_f16(uint16_t bits) {
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t special = magnitude >= (0x7c00u << 13) ? 0x7f800000u : 0u;
  const uint32_t quiet = magnitude > (0x7c00u << 13) ? 0x00400000u : 0u;
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t finite = std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(
      sign | (special != 0 ? special | quiet | (magnitude & 0x007fffffu) : finite));
}

inline float decode_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t encode_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<uint16_t>(nan ? (bits >> 16) | 0x40u : rounded);
}

inline uint16_t encode_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Normal results (>= 2^-14): re-bias the exponent and round the 13 dropped bits; a carry runs
  // into the exponent as it should.
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal results: adding 2^-1 lets the fp32 adder round to multiples of 2^-24, which are then
  // the low bits.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f);
  uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result;  // 65520 and above round to infinity
  result = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : result;
  return static_cast<uint16_t>(sign | result);
}

}  // namespace

float f16_bits_to_f32(uint16_t bits) noexcept { return decode_f16(bits); }
float bf16_bits_to_f32(uint16_t bits) noexcept { return decode_bf16(bits); }
uint16_t f32_to_f16_bits(float value) noexcept { return encode_f16(value); }
uint16_t f32_to_bf16_bits(float value) noexcept { return encode_bf16(value); }

bool converts_to_f32(DType dtype) noexcept {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ||
         dtype == DType::kF64;
}

bool converts_from_f32(DType dtype) noexcept {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

void to_f32(DType dtype, const void* in, size_t n, float* out) noexcept {
  assert(converts_to_f32(dtype));
  const auto* bytes = static_cast<const uint8_t*>(in);
  switch (dtype) {
    case DType::kF16:
      for (size_t i = 0; i < n; ++i) out[i] = decode_f16(load<uint16_t>(bytes + 2 * i));
      return;
    case DType::kBF16:
      for (size_t i = 0; i < n; ++i) out[i] = decode_bf16(load<uint16_t>(bytes + 2 * i));
      return;
    case DType::kF64:
      for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(load<double>(bytes + 8 * i));
      return;
    default:
      if (n > 0) std::memcpy(out, in, n * sizeof(float));
  }
}

void from_f32(DType dtype, const float* in, size_t n, void* out) noexcept {
  assert(converts_from_f32(dtype));
  auto* bytes = static_cast<uint8_t*>(out);
  switch (dtype) {
    case DType::kF16:
      for (size_t i = 0; i < n; ++i) store<uint16_t>(bytes + 2 * i, encode_f16(in[i]));
      return;
    case DType::kBF16:
      for (size_t i = 0; i < n; ++i) store<uint16_t>(bytes + 2 * i, encode_bf16(in[i]));
      return;
    default:
      if (n > 0) std::memcpy(out, in, n * sizeof(float));
  }
}

}  // namespace loongforge::tensor
