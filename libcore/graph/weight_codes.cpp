#include "graph/weight_codes.h"

#include <algorithm>
#include <vector>

#include "kernels/gemm.h"

namespace loongforge::graph {

using kernels::Elem;
using kernels::kWeightBlock;

namespace {

kernels::Mat rows_from(kernels::Mat m, int64_t row) {
  m.data = static_cast<const uint8_t*>(m.data) + row * m.ld * kernels::elem_bytes(m.elem);
  return m;
}

}  // namespace

void pack_rows(Weight* w, const kernels::Mat& src, bool one_scale, int64_t r0, int64_t r1,
               uint8_t* staging, kernels::QuantCounts* counts, kernels::QuantError* error) {
  const int64_t k = w->packed.k, rows = r1 - r0;
  const Elem elem = w->packed.elem;
  if (elem == Elem::kF32) {
    std::vector<float> wide;
    if (src.elem != Elem::kF32) {
      wide.resize(static_cast<size_t>(rows * k));
      kernels::cast(src.data, src.elem, wide.data(), Elem::kF32, rows * k, false);
    }
    kernels::pack_weight_rows(w->packed, wide.empty() ? src.data : wide.data(), k, r0, r1);
    return;
  }
  if (elem == Elem::kBf16) {
    kernels::cast(src.data, src.elem, staging, Elem::kBf16, rows * k, true);
  } else {
    const int64_t col_blocks = (k + kWeightBlock - 1) / kWeightBlock;
    int8_t* exps = w->exponents.data() + r0 / kWeightBlock * col_blocks;
    if (one_scale) {
      kernels::quantize_rows_at(elem, src, k, exps[0], staging, k, nullptr, 0, counts, 0, rows);
    } else {
      kernels::quantize_weight(elem, src, rows, k, w->amax_factor, staging, k, exps, counts, 0,
                               rows);
    }
    for (int64_t r = 0; r < rows && error != nullptr; r += kWeightBlock) {
      const int64_t n = std::min<int64_t>(kWeightBlock, rows - r);
      // All rows of a block row read the same exponents.
      const kernels::Mat codes{staging + r * k, k, elem, exps + r / kWeightBlock * col_blocks, 0};
      kernels::quant_error(rows_from(src, r), codes, k, 0, n, error);
    }
  }
  kernels::pack_weight_rows(w->packed, staging, k, r0, r1);
}

void set_one_scale(Weight* w, float amax) {
  const int e = kernels::scale_exponent(w->packed.elem, amax, w->amax_factor);
  std::fill(w->exponents.begin(), w->exponents.end(), static_cast<int8_t>(e));
}

quant::TensorStats pack_master(Weight* w, const kernels::Mat& master, quant::ScaleRecipe scales,
                               bool measure_errors, ThreadPool& pool) {
  const int64_t n = w->packed.n, k = w->packed.k;
  const size_t tasks = static_cast<size_t>((n + kWeightBlock - 1) / kWeightBlock);
  const bool fp8 = is_fp8(w->packed.elem), one_scale = fp8 && scales != quant::ScaleRecipe::kBlock;
  const auto rows_of = [n](int64_t t) { return std::min<int64_t>(n, (t + 1) * kWeightBlock); };
  if (one_scale) {
    std::vector<float> amax(tasks, 0.0f);
    pool.run(static_cast<int64_t>(tasks), [&](int64_t t, int) {
      amax[static_cast<size_t>(t)] = kernels::amax_rows(master, k, t * kWeightBlock, rows_of(t));
    });
    set_one_scale(w, *std::max_element(amax.begin(), amax.end()));
  }
  std::vector<kernels::QuantCounts> counts(tasks);
  std::vector<kernels::QuantError> errors(measure_errors ? tasks : 0);
  pool.reserve_scratch(static_cast<size_t>(kWeightBlock * k * 2));
  pool.run(static_cast<int64_t>(tasks), [&](int64_t t, int worker) {
    const size_t at = static_cast<size_t>(t);
    pack_rows(w, rows_from(master, t * kWeightBlock), one_scale, t * kWeightBlock, rows_of(t),
              static_cast<uint8_t*>(pool.scratch(worker)), &counts[at],
              measure_errors ? &errors[at] : nullptr);
  });
  quant::TensorStats stats;
  if (!fp8) return stats;
  stats.elem = w->packed.elem;
  stats.elements = n * k;
  for (const kernels::QuantCounts& each : counts) stats.counts.add(each);
  for (const kernels::QuantError& each : errors) stats.error.add(each);
  return stats;
}

}  // namespace loongforge::graph
