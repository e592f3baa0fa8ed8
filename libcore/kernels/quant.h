// FP8 and NF4 codecs and quantisers. kernels/fp8_format.h is the truth for every ISA.
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
  // Quantisers with scales only: the largest magnitude before and after scaling, NaN left out.
  float amax = 0.0f;
  float peak = 0.0f;
  void add(const QuantCounts& other) noexcept {
    overflow += other.overflow;
    nan += other.nan;
    zero += other.zero;
    amax = amax > other.amax ? amax : other.amax;
    peak = peak > other.peak ? peak : other.peak;
  }
};

// What rounding cost, over the non-zero finite sources; r = (decoded - x) / x.
struct QuantError {
  double error_squares = 0;     // of decoded - x
  double value_squares = 0;     // of x
  double relative_squares = 0;  // of r
  int64_t values = 0;
  void add(const QuantError& other) noexcept {
    error_squares += other.error_squares;
    value_squares += other.value_squares;
    relative_squares += other.relative_squares;
    values += other.values;
  }
};
inline constexpr int kBinades = 256;  // of fp32: bin b holds 2^(b - 127) <= |x| < 2^(b - 126)

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

// One scale for all: as quantize_rows (blocks 1 x 128) with the exponent given. exps may be null.
LF_API void quantize_rows_at(Elem fp8, Mat x, int64_t cols, int exponent, uint8_t* codes,
                             int64_t ld_codes, int8_t* exps, int64_t ld_exps, QuantCounts* counts,
                             int64_t r0, int64_t r1) noexcept;
// The exponent that a block with this largest magnitude gets; an infinite amax counts as the
// largest float.
LF_API int scale_exponent(Elem fp8, float amax, float amax_factor) noexcept;
// Largest magnitude of rows [r0, r1), NaN left out.
LF_API float amax_rows(Mat x, int64_t cols, int64_t r0, int64_t r1) noexcept;
// The values of FP8 codes as bf16 or fp32 (exact, but bf16 below 2^-55 becomes 0 as an operand).
LF_API void dequantize_rows(Mat codes, int64_t cols, MatOut out, int64_t r0, int64_t r1) noexcept;
// Adds what the codes of rows [r0, r1) of x lost (16 lanes of double, one tree a call).
LF_API void quant_error(Mat x, Mat codes, int64_t cols, int64_t r0, int64_t r1,
                        QuantError* sums) noexcept;
// Adds rows r0, r0 + step, ... below r1 to a histogram of kBinades; zeros go to bin 0.
LF_API void binade_histogram(Mat x, int64_t cols, int64_t r0, int64_t r1, int64_t step,
                             int64_t* bins) noexcept;
// NF4 (nf4_format.h): rows [r0, r1) of x. Row r's codes at codes + r * ld_codes, two a byte; an odd
// row's last half is code 7, as bitsandbytes leaves it. absmax: [rows][ld_absmax], one per 64
// columns; NaN or infinite where the block holds such a value, whose codes then mean nothing.
LF_API void quantize_nf4(Mat x, int64_t cols, uint8_t* codes, int64_t ld_codes, float* absmax,
                         int64_t ld_absmax, int64_t r0, int64_t r1) noexcept;
// The values of one row, not rounded.
LF_API void nf4_decode(const uint8_t* codes, const float* absmax, int64_t cols, float* x) noexcept;

// Element casts between kF32 and kBf16. as_operand: values under 2^-55 become 0 (a bf16 operand);
// otherwise plain RNE with subnormals kept (files, exports). NaN stays NaN.
LF_API void cast(const void* src, Elem from, void* dst, Elem to, int64_t n,
                 bool as_operand) noexcept;
LF_API void cast_f16_to_f32(const uint16_t* src, float* dst, int64_t n) noexcept;

}  // namespace loongforge::kernels
