// FP8 by FP8 products on top of gemm.h: what one calls who holds codes on both sides.
//
//   forward          C[m, n] = X[m, k] W[n, k]^T    term {X, false, kWeightT}
//   backward_input   C[m, k] = dY[m, n] W[n, k]     term {dY, false, kWeight}
//   backward_weight  C[n, k] = dY[m, n]^T X[m, k]   term {dY, true, kPlain}
//
// A term's a may be of kE4M3 or kE5M2 with row-block exponents (1 x 128, types.h), beside what
// gemm() takes; formats may differ (hybrid: E5M2 gradients with E4M3 values). The operands are the
// values of the codes, exact (under 2^-55: 0). REQUIRES precision kBf16.
//
// A job whose a are all bf16 or fp32 is gemm()'s.
// Where native_fp8() has a table that takes the job, it computes. Otherwise A is decoded block by
// block, weights as gemm() does, and the result has the bits of gemm() of the decoded operands: the
// same on every ISA, split and thread count. Decoding is exact, so nothing has to be compensated.
//
// Thread-safety: as gemm().
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/api.h"
#include "kernels/gemm.h"

namespace loongforge::kernels {

// Per worker, 64-byte aligned, for any piece of the job.
LF_API size_t loongblas_fp8_gemm_scratch_bytes(const GemmJob& job) noexcept;
// C rows [m0, m1) x columns [n0, n1), as gemm().
LF_API void loongblas_fp8_gemm(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                               void* scratch) noexcept;

LF_API size_t fp8_addmm_scratch_bytes(const GemmJob& job) noexcept;
// C = beta * C + alpha * A B. S = A B is the fp32 sum of loongblas_fp8_gemm; then alpha * S and
// beta * C, each rounded to fp32, and their sum, rounded to fp32 and, where C is bf16, once more
// (under 2^-55: 0). beta == 0: C is not read, so whatever stands there does not count. REQUIRES
// !job.accumulate and no bias.
LF_API void fp8_addmm(const GemmJob& job, float alpha, float beta, int64_t m0, int64_t m1,
                      int64_t n0, int64_t n1, void* scratch) noexcept;

}  // namespace loongforge::kernels
