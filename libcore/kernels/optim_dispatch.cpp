#include "kernels/dispatch.h"
#include "kernels/generic/tables.h"
#include "kernels/op_list.h"

namespace loongforge::kernels {

LF_DECLARE_TABLES(OptimTable, kOptimTable)

void adamw(const AdamW& h, float* param, float* m, float* v, const float* grad,
           int64_t n) noexcept {
  LF_TABLE(kOptimTable).step(h, param, m, v, grad, n);
}

void adamw_narrow(const AdamW& h, const AdamWArrays& a, const float* grad, int64_t n) noexcept {
  LF_TABLE(kOptimTable).narrow_step(h, a, grad, n);
}

void read_moments(const void* src, const int8_t* exps, Elem elem, bool root, float* out,
                  int64_t n) noexcept {
  LF_TABLE(kOptimTable).read(src, exps, elem, root, out, n);
}

void write_moments(const float* src, void* dst, int8_t* exps, Elem elem, bool root,
                   int64_t n) noexcept {
  LF_TABLE(kOptimTable).write(src, dst, exps, elem, root, n);
}

void accumulate(float* sum, const float* x, int64_t n) noexcept {
  LF_TABLE(kOptimTable).add_to(sum, x, n);
}

void scale(float* x, float factor, int64_t n) noexcept {
  LF_TABLE(kOptimTable).times(x, factor, n);
}

double sum_squares(const float* x, int64_t n) noexcept {
  return LF_TABLE(kOptimTable).squares(x, n);
}

double sum(const float* x, int64_t n) noexcept { return LF_TABLE(kOptimTable).total(x, n); }

bool all_finite(const void* x, Elem elem, int64_t n) noexcept {
  return LF_TABLE(kOptimTable).finite(x, elem, n);
}

namespace {

constexpr OpRow kFp8[] = {
    {"fp8_adamw", "AdamW with moments kept as codes", kUndirected, kE4M3Only,
     LF_IN_TABLE(kOptimTable, narrow_step)},
    {"fp8_read_moments", "moments from codes to fp32", kUndirected, kE4M3Only,
     LF_IN_TABLE(kOptimTable, read)},
    {"fp8_write_moments", "moments from fp32 to codes", kUndirected, kE4M3Only,
     LF_IN_TABLE(kOptimTable, write)},
};

}  // namespace

extern const Family kOptimFamily = {"optim", LF_TABLE_FOR(kOptimTable), kFp8};

}  // namespace loongforge::kernels
