// The bf16 images of FP8 codes, which the decoders' tables are made of.
#pragma once

#include <stdint.h>

#include "kernels/types.h"

namespace loongforge::kernels {
namespace {

// Magnitude of the low 7 bits of a code. E4M3-LA: bias 12; E5M2: bias 15. Every value is a normal
// bf16, subnormal codes included. Codes of NaN and infinity, which never reach a product, get the
// number their bits would continue to.
constexpr uint16_t fp8_image(Elem fp8, int code) {
  const int mantissa_bits = fp8 == Elem::kE4M3 ? 3 : 2;
  const int bias = fp8 == Elem::kE4M3 ? 12 : 15;
  int exponent = code >> mantissa_bits;
  int mantissa = code & ((1 << mantissa_bits) - 1);
  if (exponent == 0) {
    if (mantissa == 0) return 0;
    exponent = 1;
    while ((mantissa >> mantissa_bits) == 0) {
      mantissa *= 2;
      --exponent;
    }
    mantissa -= 1 << mantissa_bits;
  }
  return static_cast<uint16_t>(((exponent - bias + 127) << 7) | (mantissa << (7 - mantissa_bits)));
}

struct Fp8Images {
  alignas(64) uint16_t bits[2][128];  // [E4M3, E5M2]
};
constexpr Fp8Images make_fp8_images() {
  Fp8Images t{};
  for (int code = 0; code < 128; ++code) {
    t.bits[0][code] = fp8_image(Elem::kE4M3, code);
    t.bits[1][code] = fp8_image(Elem::kE5M2, code);
  }
  return t;
}
[[maybe_unused]] constexpr Fp8Images kFp8Images = make_fp8_images();

[[maybe_unused]] inline const uint16_t* fp8_images(Elem fp8) {
  return kFp8Images.bits[fp8 == Elem::kE4M3 ? 0 : 1];
}

// image * 2^exp, exactly; flushed: what is under 2^-55 becomes 0. REQUIRES |exp| <= 100.
[[maybe_unused]] inline uint16_t scale_image(uint16_t image, int exp, bool flushed) {
  if (image == 0) return 0;
  const int bits = image + exp * 128;
  return flushed && bits < ((127 - 55) << 7) ? uint16_t{0} : static_cast<uint16_t>(bits);
}

}  // namespace
}  // namespace loongforge::kernels
