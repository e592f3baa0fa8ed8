#include "kernels/dispatch.h"
#include "kernels/generic/quant.h"
#include "kernels/nf4_format.h"
#include "kernels/op_list.h"

namespace loongforge::kernels {

LF_DECLARE_TABLES(QuantTable, kQuantTable)

void fp8_encode(Elem fp8, const float* x, int64_t n, uint8_t* codes, QuantCounts* counts) noexcept {
  LF_TABLE(kQuantTable).encode(fp8, x, n, codes, counts);
}

void fp8_decode(Elem fp8, const uint8_t* codes, int64_t n, float* x) noexcept {
  LF_TABLE(kQuantTable).decode(fp8, codes, n, x);
}

void quantize_rows(Elem fp8, Mat x, int64_t cols, float amax_factor, uint8_t* codes,
                   int64_t ld_codes, int8_t* exps, int64_t ld_exps, QuantCounts* counts, int64_t r0,
                   int64_t r1) noexcept {
  LF_TABLE(kQuantTable)
      .rows(fp8, x, cols, amax_factor, codes, ld_codes, exps, ld_exps, counts, r0, r1);
}

void quantize_weight(Elem fp8, Mat x, int64_t rows, int64_t cols, float amax_factor, uint8_t* codes,
                     int64_t ld_codes, int8_t* exps, QuantCounts* counts, int64_t r0,
                     int64_t r1) noexcept {
  LF_TABLE(kQuantTable)
      .weight(fp8, x, rows, cols, amax_factor, codes, ld_codes, exps, counts, r0, r1);
}

void quantize_rows_at(Elem fp8, Mat x, int64_t cols, int exponent, uint8_t* codes, int64_t ld_codes,
                      int8_t* exps, int64_t ld_exps, QuantCounts* counts, int64_t r0,
                      int64_t r1) noexcept {
  LF_TABLE(kQuantTable)
      .rows_at(fp8, x, cols, exponent, codes, ld_codes, exps, ld_exps, counts, r0, r1);
}

float amax_rows(Mat x, int64_t cols, int64_t r0, int64_t r1) noexcept {
  return LF_TABLE(kQuantTable).amax(x, cols, r0, r1);
}

void dequantize_rows(Mat codes, int64_t cols, MatOut out, int64_t r0, int64_t r1) noexcept {
  LF_TABLE(kQuantTable).dequantize(codes, cols, out, r0, r1);
}

void quant_error(Mat x, Mat codes, int64_t cols, int64_t r0, int64_t r1,
                 QuantError* sums) noexcept {
  LF_TABLE(kQuantTable).error(x, codes, cols, r0, r1, sums);
}

int scale_exponent(Elem fp8, float amax, float amax_factor) noexcept {
  return fp8 == Elem::kE5M2 ? generic::block_exponent<Elem::kE5M2>(amax, amax_factor)
                            : generic::block_exponent<Elem::kE4M3>(amax, amax_factor);
}

// Integers only, and of a few rows: the same on every ISA without vectors.
void binade_histogram(Mat x, int64_t cols, int64_t r0, int64_t r1, int64_t step,
                      int64_t* bins) noexcept {
  uint32_t low[4][kBinades] = {};  // four, so that equal neighbours do not wait for each other
  for (int64_t r = r0; r < r1; r += step) {
    generic::with_elem(x.elem, [&]<class X>(generic::Type<X>) {
      const X* row = generic::row_of<X>(x, r);
      for (int64_t c = 0; c < cols; ++c) {
        if constexpr (sizeof(X) == 2) {
          ++low[c & 3][row[c].bits >> 7 & 0xFF];
        } else {
          ++low[c & 3][generic::bits_of(row[c]) >> 23 & 0xFF];
        }
      }
    });
  }
  for (int b = 0; b < kBinades; ++b)
    bins[b] += int64_t{low[0][b]} + low[1][b] + low[2][b] + low[3][b];
}

void quantize_nf4(Mat x, int64_t cols, uint8_t* codes, int64_t ld_codes, float* absmax,
                  int64_t ld_absmax, int64_t r0, int64_t r1) noexcept {
  LF_TABLE(kQuantTable).nf4(x, cols, codes, ld_codes, absmax, ld_absmax, r0, r1);
}

void nf4_decode(const uint8_t* codes, const float* absmax, int64_t cols, float* x) noexcept {
  for (int64_t i = 0; i < cols; ++i)
    x[i] = kNf4Values[nf4_code_at(codes, i)] * absmax[i / kNf4Block];
}

void cast(const void* src, Elem from, void* dst, Elem to, int64_t n, bool as_operand) noexcept {
  LF_TABLE(kQuantTable).cast_elems(src, from, dst, to, n, as_operand);
}

void cast_f16_to_f32(const uint16_t* src, float* dst, int64_t n) noexcept {
  LF_TABLE(kQuantTable).f16_to_f32(src, dst, n);
}

namespace {

constexpr OpRow kFp8[] = {
    {"fp8_encode", "fp32 values to codes, scale 1", kUndirected, kBothFormats,
     LF_IN_TABLE(kQuantTable, encode)},
    {"fp8_decode", "codes to fp32 values, scale 1", kUndirected, kBothFormats,
     LF_IN_TABLE(kQuantTable, decode)},
    {"fp8_quantize_rows", "activations and gradients to codes, a scale per 1 x 128", kUndirected,
     kBothFormats, LF_IN_TABLE(kQuantTable, rows)},
    {"fp8_quantize_rows_at", "the same with one scale for all (tensor-current, delayed)",
     kUndirected, kBothFormats, LF_IN_TABLE(kQuantTable, rows_at)},
    {"fp8_quantize_weight", "weights to codes, a scale per 128 x 128", kUndirected, kBothFormats,
     LF_IN_TABLE(kQuantTable, weight)},
    {"fp8_dequantize_rows", "codes with their scales to bf16 or fp32", kUndirected, kBothFormats,
     LF_IN_TABLE(kQuantTable, dequantize)},
    {"fp8_quant_error", "what codes lost of their source", kUndirected, kBothFormats,
     LF_IN_TABLE(kQuantTable, error)},
};

}  // namespace

extern const Family kQuantFamily = {"quant", LF_TABLE_FOR(kQuantTable), kFp8};

}  // namespace loongforge::kernels
