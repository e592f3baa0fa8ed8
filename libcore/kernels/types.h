// Element types shared by all kernels. Freestanding: included by the per-ISA translation units (no
// std containers).
#pragma once

#include <stdint.h>

// Kernels' building blocks are inlined even in debug builds: a copy left in an object that was
// compiled for one ISA could be the one that the linker keeps for all.
#define LF_INLINE inline __attribute__((always_inline))

namespace loongforge::kernels {

struct Bf16 {
  uint16_t bits;
};

// What a stored element is. FP8 codes carry power-of-two block scales beside them; NF4 codes are
// half a byte, carry an absmax per block (nf4_format.h) and exist in packed weights only.
enum class Elem : uint8_t { kF32, kBf16, kE4M3, kE5M2, kNf4 };

// What the operands of a product are: bf16 images (exact products, values under 2^-55 are 0) or
// fp32 with fma.
enum class Precision : uint8_t { kBf16, kF32 };

// REQUIRES e != kNf4.
LF_INLINE constexpr int elem_bytes(Elem e) {
  return e == Elem::kF32 ? 4 : e == Elem::kBf16 ? 2 : 1;
}

// Block sizes that are constants of the format (they decide results, so they are never tuned per
// machine).
inline constexpr int kWeightBlock = 128;   // FP8 weight scale blocks: 128 x 128
inline constexpr int kFeatureBlock = 128;  // FP8 activation scale blocks: 1 x 128, along features
inline constexpr int kTokenBlock = 64;     // rows summed together in norm and bias gradients
inline constexpr int kAttnKeyBlock = 512;  // keys of one softmax update, from the document's first
inline constexpr int kMinScaleExp = -41;   // smallest block scale exponent of our own codes

// A matrix view. Element (i, j) stands at data + (i * ld + j) * elem_bytes. FP8: exps holds one
// exponent per row and kFeatureBlock columns, value = code value * 2^exps[i * ld_exps + j /
// kFeatureBlock].
struct Mat {
  const void* data;
  int64_t ld;
  Elem elem;
  const int8_t* exps = nullptr;
  int64_t ld_exps = 0;
};
struct MatOut {
  void* data;
  int64_t ld;
  Elem elem;  // kF32 or kBf16
};

// The bf16 operand nearest to the fp32 value with bits u: to even in a tie, |x| < 2^-55 becomes +0,
// NaN stays NaN (quiet).
LF_INLINE constexpr uint16_t round_operand(uint32_t u) {
  const uint32_t magnitude = u & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>((u >> 16) | 0x0040u);
  if (magnitude < (static_cast<uint32_t>(127 - 55) << 23)) return 0;
  return static_cast<uint16_t>((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16);
}

}  // namespace loongforge::kernels
