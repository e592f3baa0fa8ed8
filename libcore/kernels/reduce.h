// What gradients need on their way between workers: sums, a scan for NaN and infinity, FP8 codes
// eight to a 64-bit word. Elements are kF32 or kBf16, sums fp32; bit-equal on every ISA.
// Thread-safety: pure functions; disjoint ranges may run in parallel.
#pragma once

#include "base/api.h"
#include "kernels/quant.h"
#include "kernels/types.h"

namespace loongforge::kernels {

// sum += x
LF_API void reduce_into(float* sum, const void* x, Elem elem, int64_t n) noexcept;
// out = a + b, rounded once where out is kBf16 (nearest even, under 2^-55 becomes 0). out may be
// the same memory as an operand of its own element.
LF_API void reduce_two(const void* a, Elem a_elem, const void* b, Elem b_elem, void* out,
                       Elem out_elem, int64_t n) noexcept;

struct NonFinite {
  int64_t nan = 0;
  int64_t infinite = 0;
  int64_t first = -1;  // index of the first of both; -1: there is none
};
LF_API NonFinite find_non_finite(const void* x, Elem elem, int64_t n) noexcept;

// ---- FP8 codes in words: code i in bits 8 (i % 8) .. of word i / 8, which is their order in a
// little-endian memory. The codes that the last word has too many are 0.
inline constexpr int kCodesPerWord = 8;
LF_INLINE constexpr int64_t words_of_codes(int64_t n) {
  return (n + kCodesPerWord - 1) / kCodesPerWord;
}

// codes need no alignment.
LF_API void pack_codes(const uint8_t* codes, int64_t n, uint64_t* words) noexcept;
LF_API void unpack_codes(const uint64_t* words, int64_t n, uint8_t* codes) noexcept;
// Quantises as quantize_rows does one row, and packs: exps has one exponent per kFeatureBlock.
// REQUIRES words_of_codes(n) words.
LF_API void pack_fp8(Elem fp8, const void* x, Elem elem, int64_t n, float amax_factor,
                     uint64_t* words, int8_t* exps, QuantCounts* counts) noexcept;
// x (+)= the values.
LF_API void unpack_fp8(Elem fp8, const uint64_t* words, const int8_t* exps, int64_t n, float* x,
                       bool accumulate) noexcept;

}  // namespace loongforge::kernels
