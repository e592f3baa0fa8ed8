#include <cmath>
#include <cstring>

#include "formats/gguf_types.h"
#include "tensor/convert.h"

namespace loongforge::formats {
namespace {

using tensor::DType;

template <class T>
T number_at(const uint8_t* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float half_at(const uint8_t* at) noexcept {
  return tensor::f16_bits_to_f32(number_at<uint16_t>(at));
}

// Element i of 32 in 16 bytes: the low nibbles are 0 to 15, the high ones 16 to 31.
int nibble(const uint8_t* bytes, int i) noexcept { return bytes[i % 16] >> (i / 16 * 4) & 15; }

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

// 32 elements: scale d (f16), a word with the fifth bit of each element, 16 bytes of nibbles as in
// q4_0. x = d (q - 16).
void q5_0(const uint8_t* in, int64_t blocks, float* out) noexcept {
  for (int64_t b = 0; b < blocks; ++b, in += 22, out += 32) {
    const float d = half_at(in);
    const auto high = number_at<uint32_t>(in + 2);
    for (int i = 0; i < 32; ++i) {
      const int q = nibble(in + 6, i) | static_cast<int>(high >> i & 1) << 4;
      out[i] = d * static_cast<float>(q - 16);
    }
  }
}

// As q5_0 with a minimum m (f16) after the scale. x = d q + m.
void q5_1(const uint8_t* in, int64_t blocks, float* out) noexcept {
  for (int64_t b = 0; b < blocks; ++b, in += 24, out += 32) {
    const float d = half_at(in), m = half_at(in + 2);
    const auto high = number_at<uint32_t>(in + 4);
    for (int i = 0; i < 32; ++i) {
      const int q = nibble(in + 8, i) | static_cast<int>(high >> i & 1) << 4;
      out[i] = d * static_cast<float>(q) + m;
    }
  }
}

// The formats of 256 elements have 16 groups of 16 or 8 of 32, each with its own small scale.
constexpr int kSuper = 256;

// 16 bytes: a scale and a minimum of 4 bits for each group of 16; 64 bytes of 2-bit elements; d and
// the minimums' scale (f16). Each run of 32 bytes holds 128 elements: element i in the bits
// 2 (i / 32) of byte i % 32.
void q2_k(const uint8_t* in, int64_t blocks, float* out) noexcept {
  for (int64_t b = 0; b < blocks; ++b, in += 84, out += kSuper) {
    const float d = half_at(in + 80), d_min = half_at(in + 82);
    for (int i = 0; i < kSuper; ++i) {
      const uint8_t scales = in[i / 16];
      const int q = in[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
      const float scale = d * static_cast<float>(scales & 15);
      const float minimum = d_min * static_cast<float>(scales >> 4);
      out[i] = scale * static_cast<float>(q) - minimum;
    }
  }
}

// 32 bytes with the third bit of each element (element i in bit i / 32 of byte i % 32), set where
// nothing is to be taken off; 64 bytes of lower bits as in q2_k; 12 bytes of 16 6-bit scales; d
// (f16). x = d (scale - 32) (q - 4 unless the bit is set).
void q3_k(const uint8_t* in, int64_t blocks, float* out) noexcept {
  for (int64_t b = 0; b < blocks; ++b, in += 110, out += kSuper) {
    const float d = half_at(in + 108);
    const uint8_t* packed = in + 96;
    float scale[16];
    for (int g = 0; g < 16; ++g) {
      const int low = g < 8 ? packed[g] & 15 : packed[g - 8] >> 4;
      const int high = packed[8 + g % 4] >> (g / 4 * 2) & 3;
      scale[g] = d * static_cast<float>((low | high << 4) - 32);
    }
    for (int i = 0; i < kSuper; ++i) {
      const int low = in[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
      const int off = (in[i % 32] >> (i / 32) & 1) != 0 ? 0 : 4;
      out[i] = scale[i / 16] * static_cast<float>(low - off);
    }
  }
}

// The 12 bytes of q4_k and q5_k: 8 scales and 8 minimums of 6 bits. The first four of each stand in
// the low bits of bytes 0 to 3 and 4 to 7; the others have their low four bits in bytes 8 to 11
// (scale low, minimum high) and their upper two in what is left of the first eight.
struct Groups {
  float scale[8], minimum[8];

  Groups(const uint8_t* packed, float d, float d_min) noexcept {
    for (int g = 0; g < 8; ++g) {
      const int j = g % 4;
      const int s = g < 4 ? packed[j] & 63 : (packed[8 + j] & 15) | packed[j] >> 6 << 4;
      const int m = g < 4 ? packed[4 + j] & 63 : packed[8 + j] >> 4 | packed[4 + j] >> 6 << 4;
      scale[g] = d * static_cast<float>(s);
      minimum[g] = d_min * static_cast<float>(m);
    }
  }
};

// d and the minimums' scale (f16), Groups, 128 bytes of nibbles: each run of 32 bytes holds 64
// elements, the low nibbles first. x = d scale q - d_min minimum.
void q4_k(const uint8_t* in, int64_t blocks, float* out) noexcept {
  for (int64_t b = 0; b < blocks; ++b, in += 144, out += kSuper) {
    const Groups groups(in + 4, half_at(in), half_at(in + 2));
    for (int i = 0; i < kSuper; ++i) {
      const int q = in[16 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
      out[i] = groups.scale[i / 32] * static_cast<float>(q) - groups.minimum[i / 32];
    }
  }
}

// As q4_k with 32 bytes of fifth bits before the nibbles: element i in bit i / 32 of byte i % 32.
void q5_k(const uint8_t* in, int64_t blocks, float* out) noexcept {
  for (int64_t b = 0; b < blocks; ++b, in += 176, out += kSuper) {
    const Groups groups(in + 4, half_at(in), half_at(in + 2));
    for (int i = 0; i < kSuper; ++i) {
      const int low = in[48 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
      const int high = in[16 + i % 32] >> (i / 32) & 1;
      out[i] = groups.scale[i / 32] * static_cast<float>(low | high << 4) - groups.minimum[i / 32];
    }
  }
}

// 128 bytes of low nibbles (each run of 64 holds 128 elements, the low nibbles first), 64 bytes of
// upper two bits as in q2_k, a signed byte of scale for each group of 16, d (f16).
// x = d scale (q - 32).
void q6_k(const uint8_t* in, int64_t blocks, float* out) noexcept {
  for (int64_t b = 0; b < blocks; ++b, in += 210, out += kSuper) {
    const float d = half_at(in + 208);
    for (int i = 0; i < kSuper; ++i) {
      const int low = in[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
      const int high = in[128 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
      const float scale = d * static_cast<float>(static_cast<int8_t>(in[192 + i / 16]));
      out[i] = scale * static_cast<float>((low | high << 4) - 32);
    }
  }
}

// What the 16 codes of the IQ4 formats stand for.
constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};

// As q4_0 with a table in place of q - 8.
void iq4_nl(const uint8_t* in, int64_t blocks, float* out) noexcept {
  for (int64_t b = 0; b < blocks; ++b, in += 18, out += 32) {
    const float d = half_at(in);
    for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(kIq4Values[nibble(in + 2, i)]);
  }
}

// d (f16), two upper bits of each of 8 scales, four bytes of their lower nibbles, 8 groups of 32
// elements as in iq4_nl. x = d (scale - 32) value.
void iq4_xs(const uint8_t* in, int64_t blocks, float* out) noexcept {
  for (int64_t b = 0; b < blocks; ++b, in += 136, out += kSuper) {
    const float d = half_at(in);
    const auto high = number_at<uint16_t>(in + 2);
    for (int g = 0; g < 8; ++g) {
      const int scale = (in[4 + g / 2] >> (g % 2 * 4) & 15) | (high >> (2 * g) & 3) << 4;
      const float group = d * static_cast<float>(scale - 32);
      for (int i = 0; i < 32; ++i)
        out[g * 32 + i] = group * static_cast<float>(kIq4Values[nibble(in + 8 + g * 16, i)]);
    }
  }
}

// Five ternary digits a byte, the byte being the number's fraction of 256: the leading digit of
// 3^n times it, modulo 256. 32 bytes of elements 0 to 159 (digit i / 32 of byte i % 32), 16 of 160
// to 239, 4 of the last 16 (four digits each), d (f16). x = d (digit - 1).
void tq1_0(const uint8_t* in, int64_t blocks, float* out) noexcept {
  constexpr uint8_t kPower[5] = {1, 3, 9, 27, 81};
  for (int64_t b = 0; b < blocks; ++b, in += 54, out += kSuper) {
    const float d = half_at(in + 52);
    for (int i = 0; i < kSuper; ++i) {
      const int first = i < 160 ? 0 : i < 240 ? 160 : 240;  // of the part's elements
      const int from = i < 160 ? 0 : i < 240 ? 32 : 48;     // of its bytes
      const int width = i < 160 ? 32 : i < 240 ? 16 : 4;
      const auto digits =
          static_cast<uint8_t>(in[from + (i - first) % width] * kPower[(i - first) / width]);
      out[i] = d * static_cast<float>((digits * 3 >> 8) - 1);
    }
  }
}

// 64 bytes of 2-bit elements as in q2_k, d (f16). x = d (q - 1).
void tq2_0(const uint8_t* in, int64_t blocks, float* out) noexcept {
  for (int64_t b = 0; b < blocks; ++b, in += 66, out += kSuper) {
    const float d = half_at(in + 64);
    for (int i = 0; i < kSuper; ++i) {
      const int q = in[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
      out[i] = d * static_cast<float>(q - 1);
    }
  }
}

// OCP MX: a power of two (E8M0), 32 E2M1 values as nibbles as in q4_0; the table holds them
// doubled, the scale is halved.
void mxfp4(const uint8_t* in, int64_t blocks, float* out) noexcept {
  constexpr int8_t kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  for (int64_t b = 0; b < blocks; ++b, in += 17, out += 32) {
    const float half_scale = std::ldexp(1.0f, in[0] - 128);
    for (int i = 0; i < 32; ++i)
      out[i] = half_scale * static_cast<float>(kDoubled[nibble(in + 1, i)]);
  }
}

constexpr GgufType kTypes[] = {
    {0, "F32", 1, 4, DType::kF32, plain<DType::kF32>},
    {1, "F16", 1, 2, DType::kF16, plain<DType::kF16>},
    {2, "Q4_0", 32, 18, {}, q4_0},
    {3, "Q4_1", 32, 20, {}, q4_1},
    {6, "Q5_0", 32, 22, {}, q5_0},
    {7, "Q5_1", 32, 24, {}, q5_1},
    {8, "Q8_0", 32, 34, {}, q8_0},
    {9, "Q8_1", 32, 36, {}, nullptr},
    {10, "Q2_K", 256, 84, {}, q2_k},
    {11, "Q3_K", 256, 110, {}, q3_k},
    {12, "Q4_K", 256, 144, {}, q4_k},
    {13, "Q5_K", 256, 176, {}, q5_k},
    {14, "Q6_K", 256, 210, {}, q6_k},
    {15, "Q8_K", 256, 292, {}, nullptr},
    {16, "IQ2_XXS", 256, 66, {}, nullptr},
    {17, "IQ2_XS", 256, 74, {}, nullptr},
    {18, "IQ3_XXS", 256, 98, {}, nullptr},
    {19, "IQ1_S", 256, 50, {}, nullptr},
    {20, "IQ4_NL", 32, 18, {}, iq4_nl},
    {21, "IQ3_S", 256, 110, {}, nullptr},
    {22, "IQ2_S", 256, 82, {}, nullptr},
    {23, "IQ4_XS", 256, 136, {}, iq4_xs},
    {24, "I8", 1, 1, DType::kI8, nullptr},
    {25, "I16", 1, 2, DType::kI16, nullptr},
    {26, "I32", 1, 4, DType::kI32, nullptr},
    {27, "I64", 1, 8, DType::kI64, nullptr},
    {28, "F64", 1, 8, DType::kF64, plain<DType::kF64>},
    {29, "IQ1_M", 256, 56, {}, nullptr},
    {30, "BF16", 1, 2, DType::kBF16, plain<DType::kBF16>},
    {34, "TQ1_0", 256, 54, {}, tq1_0},
    {35, "TQ2_0", 256, 66, {}, tq2_0},
    {39, "MXFP4", 32, 17, {}, mxfp4},
    {40, "NVFP4", 64, 36, {}, nullptr},
    {41, "Q1_0", 128, 18, {}, nullptr},
};

}  // namespace

const GgufType* find_gguf_type(uint32_t id) noexcept {
  for (const GgufType& type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

}  // namespace loongforge::formats
