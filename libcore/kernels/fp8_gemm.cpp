#include "kernels/fp8_gemm.h"

#include <string.h>

#include "kernels/native_fp8.h"
#include "kernels/quant.h"

namespace loongforge::kernels {
namespace {

constexpr int64_t kDecodedRows =
    256;  // rows of C whose A is decoded at a time, a multiple of the exponents' blocks
constexpr int64_t kSumRows = 256;  // rows and columns of the sums that fp8_addmm scales
constexpr int64_t kSumCols = 2048;
static_assert(kDecodedRows % kFeatureBlock == 0);

bool is_fp8(Elem e) noexcept { return e == Elem::kE4M3 || e == Elem::kE5M2; }
size_t aligned(size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }
int64_t at_most(int64_t x, int64_t limit) noexcept { return x < limit ? x : limit; }

const void* element(const Mat& m, int64_t row, int64_t col) noexcept {
  return static_cast<const uint8_t*>(m.data) + (row * m.ld + col) * elem_bytes(m.elem);
}

// Rows and columns of m from (row, col) on. REQUIRES col % kFeatureBlock == 0 for FP8.
Mat from(const Mat& m, int64_t row, int64_t col) noexcept {
  Mat part = m;
  part.data = element(m, row, col);
  if (is_fp8(m.elem)) part.exps = m.exps + row * m.ld_exps + col / kFeatureBlock;
  return part;
}

size_t decoded_bytes(const GemmTerm& term) noexcept {
  return is_fp8(term.a.elem) ? aligned(static_cast<size_t>(term.k * kDecodedRows) * sizeof(Bf16))
                             : 0;
}

// The term for rows [m0, m0 + rows) of C, which then count from 0; FP8 A decoded into `buffer`.
GemmTerm rows_of(const GemmTerm& term, int64_t m0, int64_t rows, uint8_t* buffer) noexcept {
  GemmTerm t = term;
  if (!is_fp8(term.a.elem)) {
    t.a.data = term.a_transposed ? element(term.a, 0, m0) : element(term.a, m0, 0);
    return t;
  }
  // Rows of C are columns of a transposed A, whose exponents start at multiples of kFeatureBlock.
  const int64_t skipped = term.a_transposed ? m0 % kFeatureBlock : 0;
  const int64_t count = term.a_transposed ? term.k : rows;
  const int64_t cols = term.a_transposed ? skipped + rows : term.k;
  const int64_t ld = term.a_transposed ? kDecodedRows : term.k;
  dequantize_rows(term.a_transposed ? from(term.a, 0, m0 - skipped) : from(term.a, m0, 0), cols,
                  {buffer, ld, Elem::kBf16}, 0, count);
  t.a = {reinterpret_cast<const Bf16*>(buffer) + skipped, ld, Elem::kBf16};
  return t;
}

MatOut rows_of(const MatOut& c, int64_t m0) noexcept {
  return {static_cast<uint8_t*>(c.data) + m0 * c.ld * elem_bytes(c.elem), c.ld, c.elem};
}

bool has_fp8_a(const GemmJob& job) noexcept {
  for (int t = 0; t < job.n_terms; ++t)
    if (is_fp8(job.terms[t].a.elem)) return true;
  return false;
}

const NativeFp8* native_for(const GemmJob& job) noexcept {
  const NativeFp8* table = native_fp8();
  return table != nullptr && has_fp8_a(job) && table->takes(job) ? table : nullptr;
}

}  // namespace

size_t loongblas_fp8_gemm_scratch_bytes(const GemmJob& job) noexcept {
  if (const NativeFp8* table = native_for(job); table != nullptr) return table->scratch_bytes(job);
  size_t bytes = aligned(gemm_scratch_bytes());
  if (!has_fp8_a(job)) return bytes;
  bytes += aligned(sizeof(GemmTerm) * static_cast<size_t>(job.n_terms));
  for (int t = 0; t < job.n_terms; ++t) bytes += decoded_bytes(job.terms[t]);
  return bytes;
}

void loongblas_fp8_gemm(const GemmJob& job, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                        void* scratch) noexcept {
  if (const NativeFp8* table = native_for(job); table != nullptr)
    return table->gemm(job, m0, m1, n0, n1, scratch);
  if (!has_fp8_a(job)) return gemm(job, m0, m1, n0, n1, scratch);
  auto* p = static_cast<uint8_t*>(scratch) + aligned(gemm_scratch_bytes());
  auto* terms = reinterpret_cast<GemmTerm*>(p);
  p += aligned(sizeof(GemmTerm) * static_cast<size_t>(job.n_terms));
  for (int64_t m = m0; m < m1;) {
    const int64_t end = at_most(m / kFeatureBlock * kFeatureBlock + kDecodedRows, m1);
    uint8_t* buffer = p;
    for (int t = 0; t < job.n_terms; ++t) {
      terms[t] = rows_of(job.terms[t], m, end - m, buffer);
      buffer += decoded_bytes(job.terms[t]);
    }
    GemmJob part = job;
    part.m = end - m;
    part.terms = terms;
    part.c = rows_of(job.c, m);
    gemm(part, 0, part.m, n0, n1, scratch);
    m = end;
  }
}

namespace {

// One row: c = beta * c + alpha * s.
template <class C, class Read, class Write>
void combine(const float* s, float alpha, float beta, int64_t n, C* c, Read read,
             Write write) noexcept {
  for (int64_t j = 0; j < n; ++j) {
    const float scaled = alpha * s[j];
    write(&c[j], beta == 0.0f ? scaled : scaled + beta * read(c[j]));
  }
}

void combine_row(const float* s, float alpha, float beta, int64_t n, const MatOut& c, int64_t row,
                 int64_t col) noexcept {
  if (c.elem == Elem::kF32) {
    combine(
        s, alpha, beta, n, static_cast<float*>(c.data) + row * c.ld + col,
        [](float x) { return x; }, [](float* out, float x) { *out = x; });
    return;
  }
  const auto read = [](Bf16 x) {
    const uint32_t u = static_cast<uint32_t>(x.bits) << 16;
    float value;
    memcpy(&value, &u, sizeof value);
    return value;
  };
  const auto write = [](Bf16* out, float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    out->bits = round_operand(u);
  };
  combine(s, alpha, beta, n, static_cast<Bf16*>(c.data) + row * c.ld + col, read, write);
}

// The product alone, into fp32 sums that begin with C's element (m0, n0): C itself begins so far
// before them, and only the piece's own addresses are formed from it.
GemmJob sums_of(const GemmJob& job, float* sums, int64_t m0, int64_t n0) noexcept {
  GemmJob product = job;
  const auto skipped = static_cast<uintptr_t>(m0 * kSumCols + n0) * sizeof(float);
  product.c = {reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(sums) - skipped), kSumCols,
               Elem::kF32};
  return product;
}

}  // namespace

size_t fp8_addmm_scratch_bytes(const GemmJob& job) noexcept {
  return aligned(sizeof(float) * kSumRows * kSumCols) +
         loongblas_fp8_gemm_scratch_bytes(sums_of(job, nullptr, 0, 0));
}

void fp8_addmm(const GemmJob& job, float alpha, float beta, int64_t m0, int64_t m1, int64_t n0,
               int64_t n1, void* scratch) noexcept {
  auto* sums = static_cast<float*>(scratch);
  void* rest = static_cast<uint8_t*>(scratch) + aligned(sizeof(float) * kSumRows * kSumCols);
  for (int64_t m = m0; m < m1; m += kSumRows) {
    const int64_t m_end = at_most(m + kSumRows, m1);
    for (int64_t n = n0; n < n1; n += kSumCols) {
      const int64_t n_end = at_most(n + kSumCols, n1);
      const GemmJob product = sums_of(job, sums, m, n);
      loongblas_fp8_gemm(product, m, m_end, n, n_end, rest);
      for (int64_t i = m; i < m_end; ++i)
        combine_row(sums + (i - m) * kSumCols, alpha, beta, n_end - n, job.c, i, n);
    }
  }
}

}  // namespace loongforge::kernels
