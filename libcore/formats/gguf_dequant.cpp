#include <cstring>

#include "formats/gguf_types.h"
#include "tensor/convert.h"

namespace loongforge::formats {
namespace {

using tensor::DType;

float half_at(const uint8_t* at) noexcept {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return tensor::f16_bits_to_f32(bits);
}

template <DType kType>
void plain(const uint8_t* in, int64_t blocks, float* out) noexcept {
  tensor::to_f32(kType, in, static_cast<size_t>(blocks), out);
}

// 32 elements: scale d (f16), 16 bytes of nibbles; the low ones are elements 0 to 15, the high ones
// 16 to 31. x = d (q - 8).
void q4_0(const uint8_t* in, int64_t blocks, float* out) noexcept {
  for (int64_t b = 0; b < blocks; ++b, in += 18, out += 32) {
    const float d = half_at(in);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>((in[2 + i] & 15) - 8);
      out[i + 16] = d * static_cast<float>((in[2 + i] >> 4) - 8);
    }
  }
}

// As q4_0 with a minimum m (f16) after the scale. x = d q + m.
void q4_1(const uint8_t* in, int64_t blocks, float* out) noexcept {
  for (int64_t b = 0; b < blocks; ++b, in += 20, out += 32) {
    const float d = half_at(in), m = half_at(in + 2);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>(in[4 + i] & 15) + m;
      out[i + 16] = d * static_cast<float>(in[4 + i] >> 4) + m;
    }
  }
}

// 32 elements: scale d (f16), 32 signed bytes. x = d q.
void q8_0(const uint8_t* in, int64_t blocks, float* out) noexcept {
  for (int64_t b = 0; b < blocks; ++b, in += 34, out += 32) {
    const float d = half_at(in);
    for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(in[2 + i]));
  }
}

constexpr GgufType kTypes[] = {
    {0, "F32", 1, 4, DType::kF32, plain<DType::kF32>},
    {1, "F16", 1, 2, DType::kF16, plain<DType::kF16>},
    {2, "Q4_0", 32, 18, {}, q4_0},
    {3, "Q4_1", 32, 20, {}, q4_1},
    {6, "Q5_0", 32, 22, {}, nullptr},
    {7, "Q5_1", 32, 24, {}, nullptr},
    {8, "Q8_0", 32, 34, {}, q8_0},
    {9, "Q8_1", 32, 36, {}, nullptr},
    {10, "Q2_K", 256, 84, {}, nullptr},
    {11, "Q3_K", 256, 110, {}, nullptr},
    {12, "Q4_K", 256, 144, {}, nullptr},
    {13, "Q5_K", 256, 176, {}, nullptr},
    {14, "Q6_K", 256, 210, {}, nullptr},
    {15, "Q8_K", 256, 292, {}, nullptr},
    {16, "IQ2_XXS", 256, 66, {}, nullptr},
    {17, "IQ2_XS", 256, 74, {}, nullptr},
    {18, "IQ3_XXS", 256, 98, {}, nullptr},
    {19, "IQ1_S", 256, 50, {}, nullptr},
    {20, "IQ4_NL", 32, 18, {}, nullptr},
    {21, "IQ3_S", 256, 110, {}, nullptr},
    {22, "IQ2_S", 256, 82, {}, nullptr},
    {23, "IQ4_XS", 256, 136, {}, nullptr},
    {24, "I8", 1, 1, DType::kI8, nullptr},
    {25, "I16", 1, 2, DType::kI16, nullptr},
    {26, "I32", 1, 4, DType::kI32, nullptr},
    {27, "I64", 1, 8, DType::kI64, nullptr},
    {28, "F64", 1, 8, DType::kF64, plain<DType::kF64>},
    {29, "IQ1_M", 256, 56, {}, nullptr},
    {30, "BF16", 1, 2, DType::kBF16, plain<DType::kBF16>},
    {34, "TQ1_0", 256, 54, {}, nullptr},
    {35, "TQ2_0", 256, 66, {}, nullptr},
    {39, "MXFP4", 32, 17, {}, nullptr},
};

}  // namespace

const GgufType* find_gguf_type(uint32_t id) noexcept {
  for (const GgufType& type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

}  // namespace loongforge::formats
