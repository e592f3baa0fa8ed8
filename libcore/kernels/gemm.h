// GEMM: C[m, n] = sum over terms t of A_t[m, k_t] * B_t[k_t, n] (+ C) (+ bias).
//
// Results are bit-equal for every ISA, split and thread count: one fp32 accumulator per output
// element, K in order over the terms, within each pair of k the odd element first, then the even
// one (as vdpbf16ps does); storing an accumulator to C between K blocks is exact, so blocking is
// free. An odd k_t is padded with a zero. Precision::kBf16: both operands are rounded to bf16
// (nearest even, under 2^-55 becomes 0) before use, products are exact; Precision::kF32: operands
// are used as they are, with fma. Source: DESIGN 4.
//
// Thread-safety: pure functions of their arguments; disjoint ranges of one job may run in parallel.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/api.h"
#include "kernels/types.h"

namespace loongforge::kernels {

// ---- A weight [n, k] in the byte order that the active ISA's micro-kernels want. One copy serves
// W^T (forward), W (dX) and row look-up (embedding). The order is private to gemm; sizes and block
// exponents are not.
struct PackedWeight {
  uint8_t* data = nullptr;  // packed_weight_bytes(), 64-byte aligned
  int8_t* scale_exps =
      nullptr;  // FP8: [ceil(n/128)][ceil(k/128)], value = code * 2^exp, |exp| <= 100; else null
  int64_t n = 0, k = 0;
  Elem elem = Elem::kBf16;  // any; kNf4's scales stand in data, with the codes
};

LF_API size_t packed_weight_bytes(Elem elem, int64_t n, int64_t k) noexcept;
// Packs rows [row0, row1) from row-major source of the same elem (src = row row0, ld in elements).
// REQUIRES row0 % 64 == 0, and row1 % 64 == 0 or row1 == n. scale_exps are the caller's to fill.
// bf16 values under 2^-55 become 0 here.
LF_API void pack_weight_rows(const PackedWeight& w, const void* src, int64_t ld, int64_t row0,
                             int64_t row1) noexcept;
// The same for kNf4: codes as nf4_format.h has them (row row0 first, ld_codes in bytes), absmax
// [row1 - row0][ld_absmax], one per 64 columns and finite.
LF_API void pack_nf4_rows(const PackedWeight& w, const uint8_t* codes, int64_t ld_codes,
                          const float* absmax, int64_t ld_absmax, int64_t row0,
                          int64_t row1) noexcept;
// out[i, :] = row rows[i] of w as values (scales applied), rounded to out.elem.
LF_API void gather_weight_rows(const PackedWeight& w, const int32_t* rows, int64_t count,
                               MatOut out) noexcept;

// ---- One product.
struct GemmTerm {
  Mat a;              // kF32 or kBf16
  bool a_transposed;  // false: A(i, kk) = a[i, kk]; true: A(i, kk) = a[kk, i]
  enum class B : uint8_t {
    kWeightT,  // B(kk, j) = w[j, kk]      k == w->k, n == w->n: forward of a linear layer
    kWeight,   // B(kk, j) = w[kk, j]      k == w->n, n == w->k: its dX
    kPlain,    // B(kk, j) = b[kk, j]      b kF32, kBf16 or FP8 with row-block exponents
    kPlainT,   // B(kk, j) = b[j, kk]      b kF32 or kBf16
  } b_kind;
  const PackedWeight* w;  // for the weight kinds
  Mat b;                  // for the plain kinds
  int64_t k;
};

struct GemmJob {
  int64_t m, n;
  const GemmTerm* terms;
  int n_terms;
  MatOut c;           // kF32 or kBf16 (rounded once, at the end; under 2^-55 becomes 0)
  bool accumulate;    // start from C; REQUIRES c.elem == kF32 and no subnormal in C (earlier sums
                      // hold none)
  const float* bias;  // [n], added to the sum before rounding; may be null
  Precision precision;
};

// Second-level cache that one thread has to itself, in bytes (topo/ knows); 0: unknown. How many
// rows of A are packed at a time follows from it; results do not. Thread-safety: only while no
// kernel runs.
LF_API void gemm_set_cache(int64_t l2_bytes) noexcept;
int64_t gemm_packed_bytes() noexcept;         // most bytes of packed A, for the ISAs' blocking
LF_API size_t gemm_scratch_bytes() noexcept;  // per worker, whatever the job
// Where a job is best cut: rows in multiples of m_step, columns in multiples of n_step (any cut is
// correct). Every piece packs its own rows of A and decodes its own columns of B, so few large
// pieces are best: rows where there are a hundred or more for each thread, else columns. Up to 4
// rows read a weight once, at the memory's rate.
LF_API void gemm_steps(Precision precision, int64_t* m_step, int64_t* n_step) noexcept;
// Computes C rows [m0, m1) x columns [n0, n1). scratch: gemm_scratch_bytes(), 64-byte aligned.
LF_API void gemm(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                 void* scratch) noexcept;

}  // namespace loongforge::kernels
