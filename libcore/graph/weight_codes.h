// A weight's rows as its packed element: FP8 codes with their scales, bf16 or fp32.
// Thread-safety: disjoint rows of one weight may run in parallel.
#pragma once

#include "base/pool.h"
#include "graph/parameters.h"
#include "kernels/quant.h"
#include "quant/recipe.h"
#include "quant/statistics.h"

namespace loongforge::graph {

inline bool is_fp8(kernels::Elem elem) {
  return elem == kernels::Elem::kE4M3 || elem == kernels::Elem::kE5M2;
}

// Packs rows [r0, r1) from dense fp32 or bf16 rows (src = row r0). staging: (r1 - r0) * k * 2
// bytes. one_scale: exponents are set and all the same; else they are chosen here, per 128 x 128.
// FP8: adds to counts; error, where not null, gets what rounding cost. REQUIRES r0 % 128 == 0.
void pack_rows(Weight* w, const kernels::Mat& src, bool one_scale, int64_t r0, int64_t r1,
               uint8_t* staging, kernels::QuantCounts* counts, kernels::QuantError* error);

// The exponent of the whole tensor, in every block.
void set_one_scale(Weight* w, float amax);

// All rows from the master. Statistics are empty (no elements) where the weight is not FP8.
quant::TensorStats pack_master(Weight* w, const kernels::Mat& master, quant::ScaleRecipe scales,
                               bool measure_errors, ThreadPool& pool);

}  // namespace loongforge::graph
