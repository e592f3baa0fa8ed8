#include "kernels/dispatch.h"
#include "kernels/generic/tables.h"

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

void cast(const void* src, Elem from, void* dst, Elem to, int64_t n, bool as_operand) noexcept {
  LF_TABLE(kQuantTable).cast_elems(src, from, dst, to, n, as_operand);
}

void cast_f16_to_f32(const uint16_t* src, float* dst, int64_t n) noexcept {
  LF_TABLE(kQuantTable).f16_to_f32(src, dst, n);
}

}  // namespace loongforge::kernels
