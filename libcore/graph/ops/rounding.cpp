#include "graph/ops/rounding.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "graph/parallel.h"
#include "kernels/quant.h"

namespace loongforge::graph {
namespace {

using kernels::kTokenBlock;
using kernels::Mat;

size_t chunk_of(int64_t row) { return static_cast<size_t>(row / kTokenBlock); }
size_t chunks(const RunContext& c) { return chunk_of(c.tokens() + kTokenBlock - 1); }

// The scale of the whole tensor: by history where there is one, else by its own largest value.
int tensor_exponent(RunContext& c, const RoundedTensor& t, const Mat& x) {
  if (t.scales == quant::ScaleRecipe::kDelayed && c.scaling != nullptr) {
    if (const std::optional<int> e = c.scaling->exponent(t.name, t.fp8, t.gradient, t.factor))
      return *e;
  }
  std::vector<float> amax(chunks(c), 0.0f);
  run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
    amax[chunk_of(r0)] = kernels::amax_rows(x, t.cols, r0, r1);
  });
  return kernels::scale_exponent(
      t.fp8, amax.empty() ? 0.0f : *std::max_element(amax.begin(), amax.end()), t.factor);
}

void remember(RunContext& c, const RoundedTensor& t, const Mat& x, float amax) {
  if (t.scales != quant::ScaleRecipe::kDelayed || c.scaling == nullptr || c.gradients == nullptr)
    return;
  c.scaling->observe(t.name, amax);
  if (!c.scaling->wants_binades(t.gradient)) return;
  // Rows 0, 16, 32, ... of the micro-batch, whatever the chunks.
  static_assert(kTokenBlock % quant::kBiasRowStep == 0);
  std::vector<std::vector<int64_t>> parts(chunks(c));
  run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
    std::vector<int64_t>& bins = parts[chunk_of(r0)];
    bins.assign(kernels::kBinades, 0);
    kernels::binade_histogram(x, t.cols, r0, r1, quant::kBiasRowStep, bins.data());
  });
  for (const std::vector<int64_t>& bins : parts)
    if (!bins.empty()) c.scaling->observe_binades(t.name, bins);
}

// In chunks of kTokenBlock rows whatever the number of threads, so that the sums are the same.
kernels::QuantError measure(RunContext& c, const RoundedTensor& t, const Mat& x, const Mat& codes) {
  std::vector<kernels::QuantError> parts(chunks(c));
  c.pool.run(static_cast<int64_t>(parts.size()), [&](int64_t n, int) {
    const int64_t r0 = n * kTokenBlock, r1 = std::min(c.tokens(), r0 + kTokenBlock);
    kernels::quant_error(x, codes, t.cols, r0, r1, &parts[static_cast<size_t>(n)]);
  });
  kernels::QuantError sum;
  for (const kernels::QuantError& part : parts) sum.add(part);
  return sum;
}

}  // namespace

Mat round_to_fp8(RunContext& c, const RoundedTensor& t, const Mat& x, uint8_t* codes, int8_t* exps,
                 const kernels::MatOut& image, bool count) {
  Timed timed(c, &Profile::quantize);
  const Mat result{codes, t.cols, t.fp8, exps, t.exps_ld()};
  const bool blocks = t.scales == quant::ScaleRecipe::kBlock;
  const int exponent = blocks ? 0 : tensor_exponent(c, t, x);
  std::vector<kernels::QuantCounts> counts(chunks(c));
  run_rows(c.pool, c.tokens(), [&](int64_t r0, int64_t r1) {
    kernels::QuantCounts* seen = &counts[chunk_of(r0)];
    if (blocks) {
      kernels::quantize_rows(t.fp8, x, t.cols, t.factor, codes, t.cols, exps, t.exps_ld(), seen, r0,
                             r1);
    } else {
      kernels::quantize_rows_at(t.fp8, x, t.cols, exponent, codes, t.cols, exps, t.exps_ld(), seen,
                                r0, r1);
    }
    if (image.data != nullptr) kernels::dequantize_rows(result, t.cols, image, r0, r1);
  });
  if (!count) return result;
  quant::TensorStats stats;
  stats.elem = t.fp8;
  stats.gradient = t.gradient;
  stats.elements = c.tokens() * t.cols;
  for (const kernels::QuantCounts& each : counts) stats.counts.add(each);
  if (c.measure_errors) stats.error = measure(c, t, x, result);
  remember(c, t, x, stats.counts.amax);
  c.stats.tensors[t.name].add(stats);
  return result;
}

}  // namespace loongforge::graph
