// The bf16 images of FP8 codes (exact, subnormal codes included), which the decoders' tables are
// made of. Codes of NaN and infinity never reach a product.
#pragma once

#include <stdint.h>

#include "kernels/fp8_format.h"
#include "kernels/types.h"

namespace loongforge::kernels {
namespace {

struct Fp8Images {
  alignas(64) uint16_t bits[2][128];  // [E4M3, E5M2]
};
constexpr Fp8Images make_fp8_images() {
  Fp8Images t{};
  for (int code = 0; code < 128; ++code) {
    t.bits[0][code] =
        static_cast<uint16_t>(fp8_decode_bits<Elem::kE4M3>(static_cast<uint8_t>(code)) >> 16);
    t.bits[1][code] =
        static_cast<uint16_t>(fp8_decode_bits<Elem::kE5M2>(static_cast<uint8_t>(code)) >> 16);
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
