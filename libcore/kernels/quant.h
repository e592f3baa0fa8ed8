// FP8 codecs and quantisers. kernels/fp8_format.h is the truth for every ISA.
//
// Scales are powers of two: exponent e of a block is the smallest one with amax * factor <= largest
// value * 2^e (exponent rounded up), clamped to >= kMinScaleExp; 0 for an all-zero block. Codes =
// RNE(value * 2^-e), saturating; NaN -> 0x7F. Thread-safety: pure functions; disjoint ranges may
// run in parallel.
#pragma once

#include "base/api.h"
#include "kernels/types.h"

namespace loongforge::kernels {

// Added to, never reset; a null pointer: nothing is counted.
struct QuantCounts {
  int64_t overflow = 0;  // elements whose rounded magnitude exceeds the largest value, infinities
  int64_t nan = 0;
  int64_t zero = 0;  // non-zero sources whose code is zero
};

// Plain casts, scale 1. fp8 is kE4M3 (E4M3-LA) or kE5M2.
LF_API void fp8_encode(Elem fp8, const float* x, int64_t n, uint8_t* codes,
                       QuantCounts* counts) noexcept;
LF_API void fp8_decode(Elem fp8, const uint8_t* codes, int64_t n, float* x) noexcept;

// Activations: rows [r0, r1) of x (kF32 or kBf16), blocks 1 x 128. codes: [rows, ld_codes], exps:
// [rows, ld_exps].
LF_API void quantize_rows(Elem fp8, Mat x, int64_t cols, float amax_factor, uint8_t* codes,
                          int64_t ld_codes, int8_t* exps, int64_t ld_exps, QuantCounts* counts,
                          int64_t r0, int64_t r1) noexcept;
// Weights: rows [r0, r1) of x, blocks 128 x 128 counted from row 0. REQUIRES r0 % 128 == 0.
// exps: [ceil(rows / 128)][ceil(cols / 128)], indexed by absolute block row. codes: row r at codes
// + r * ld_codes.
LF_API void quantize_weight(Elem fp8, Mat x, int64_t rows, int64_t cols, float amax_factor,
                            uint8_t* codes, int64_t ld_codes, int8_t* exps, QuantCounts* counts,
                            int64_t r0, int64_t r1) noexcept;

// Element casts between kF32 and kBf16. as_operand: values under 2^-55 become 0 (a bf16 operand);
// otherwise plain RNE with subnormals kept (files, exports). NaN stays NaN.
LF_API void cast(const void* src, Elem from, void* dst, Elem to, int64_t n,
                 bool as_operand) noexcept;
LF_API void cast_f16_to_f32(const uint16_t* src, float* dst, int64_t n) noexcept;

}  // namespace loongforge::kernels
