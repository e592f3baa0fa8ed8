#include "convert/stripes.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "base/error.h"
#include "base/stop.h"
#include "kernels/nf4_format.h"
#include "tensor/convert.h"

namespace loongforge::convert {
namespace {

using tensor::DType;

constexpr int64_t kGroupRows = kernels::kWeightBlock;
constexpr int64_t kCopyBytes =
    2 << 20;  // of a plain copy: stays in the cache between read, checksum and write
constexpr int64_t kStripeBytes = 8 << 20;  // of converted rows, as fp32

int64_t stripe_rows(const RowSource& source, int64_t row_bytes, int64_t target_bytes) {
  const int64_t group = std::max<int64_t>(1, kGroupRows * row_bytes);
  return std::min(source.rows, kGroupRows * std::max<int64_t>(1, target_bytes / group));
}

}  // namespace

void StripeConverter::run_tasks(int64_t tasks, const std::function<void(int64_t, int)>& body) {
  std::vector<std::exception_ptr> failures(static_cast<size_t>(tasks));
  pool_.run(tasks, [&](int64_t task, int worker) {
    try {
      body(task, worker);
    } catch (...) {
      failures[static_cast<size_t>(task)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

void StripeConverter::copy(const RowSource& source, const RowSink& sink,
                           const std::function<void(int64_t)>& after) {
  const auto row_bytes = static_cast<int64_t>(
      tensor::dtype_row_bytes(*source.stored, static_cast<uint64_t>(source.cols)));
  const int64_t step = stripe_rows(source, row_bytes, kCopyBytes);
  stripe_.resize(static_cast<size_t>(step * row_bytes));
  for (int64_t r0 = 0; r0 < source.rows; r0 += step) {
    const int64_t r1 = std::min(source.rows, r0 + step);
    const std::span<uint8_t> rows(stripe_.data(), static_cast<size_t>((r1 - r0) * row_bytes));
    source.read_raw(r0, r1, rows);
    sink(rows, r1 - r0);
    after(r1);
    check_stop();
  }
}

// Rows as the source's bf16, or as fp32.
kernels::Mat StripeConverter::read_group(const RowSource& source, int64_t r0, int64_t r1,
                                         int worker) {
  std::vector<float>& values = scratch_[static_cast<size_t>(worker)];
  values.resize(static_cast<size_t>((r1 - r0) * source.cols));
  if (source.stored != DType::kBF16) {
    source.read_f32(r0, r1, values);
    return {values.data(), source.cols, kernels::Elem::kF32};
  }
  source.read_raw(r0, r1, {reinterpret_cast<uint8_t*>(values.data()), values.size() * 2});
  return {values.data(), source.cols, kernels::Elem::kBf16};
}

void StripeConverter::quantize_group(const RowSource& source, int64_t r0, int64_t r1, int worker,
                                     uint8_t* out, int8_t* exps, kernels::QuantCounts* counts) {
  kernels::quantize_weight(kernels::Elem::kE4M3, read_group(source, r0, r1, worker), r1 - r0,
                           source.cols, 1.0f, out, source.cols, exps, counts, 0, r1 - r0);
}

void StripeConverter::nf4_group(const RowSource& source, int64_t r0, int64_t r1, int worker,
                                uint8_t* out, float* absmax, kernels::QuantCounts* counts) {
  const int64_t blocks = kernels::nf4_blocks(source.cols);
  kernels::quantize_nf4(read_group(source, r0, r1, worker), source.cols, out,
                        kernels::nf4_row_bytes(source.cols), absmax, blocks, 0, r1 - r0);
  for (int64_t i = 0; i < (r1 - r0) * blocks; ++i) counts->nan += std::isfinite(absmax[i]) ? 0 : 1;
}

Converted StripeConverter::run(const RowSource& source, DType target, const RowSink& sink,
                               const std::function<void(int64_t)>& after) {
  Converted result;
  if (source.stored == target) {
    copy(source, sink, after);
    return result;
  }
  const bool fp8 = target == DType::kE4M3LA, nf4 = target == DType::kNf4;
  if (!fp8 && !nf4 && !tensor::converts_from_f32(target)) {
    throw_failed("", "rows cannot be turned into " + std::string(tensor::dtype_name(target)));
  }
  scratch_.resize(static_cast<size_t>(pool_.threads()));
  const auto row_bytes =
      static_cast<int64_t>(tensor::dtype_row_bytes(target, static_cast<uint64_t>(source.cols)));
  const int64_t step = std::max(stripe_rows(source, source.cols * 4, kStripeBytes),
                                std::min(source.rows, kGroupRows * pool_.threads()));
  const int64_t col_blocks = (source.cols + kGroupRows - 1) / kGroupRows;
  stripe_.resize(static_cast<size_t>(step * row_bytes));
  for (int64_t r0 = 0; r0 < source.rows; r0 += step) {
    const int64_t r1 = std::min(source.rows, r0 + step);
    const int64_t groups = (r1 - r0 + kGroupRows - 1) / kGroupRows;
    std::vector<int8_t> exps(fp8 ? static_cast<size_t>(groups * col_blocks) : 0);
    const int64_t absmax_row = nf4 ? kernels::nf4_blocks(source.cols) : 0;
    std::vector<float> absmax(static_cast<size_t>((r1 - r0) * absmax_row));
    std::vector<kernels::QuantCounts> counts(static_cast<size_t>(groups));
    run_tasks(groups, [&](int64_t group, int worker) {
      const int64_t g0 = r0 + group * kGroupRows, g1 = std::min(r1, g0 + kGroupRows);
      uint8_t* out = stripe_.data() + (g0 - r0) * row_bytes;
      if (fp8) {
        quantize_group(source, g0, g1, worker, out, exps.data() + group * col_blocks,
                       &counts[static_cast<size_t>(group)]);
        return;
      }
      if (nf4) {
        nf4_group(source, g0, g1, worker, out, absmax.data() + (g0 - r0) * absmax_row,
                  &counts[static_cast<size_t>(group)]);
        return;
      }
      std::vector<float>& values = scratch_[static_cast<size_t>(worker)];
      values.resize(static_cast<size_t>((g1 - g0) * source.cols));
      source.read_f32(g0, g1, values);
      tensor::from_f32(target, values.data(), values.size(), out);
    });
    result.scales.insert(result.scales.end(), absmax.begin(), absmax.end());
    for (int8_t exponent : exps) result.scales.push_back(std::ldexp(1.0f, exponent));
    for (const kernels::QuantCounts& each : counts) {
      result.counts.overflow += each.overflow;
      result.counts.nan += each.nan;
      result.counts.zero += each.zero;
    }
    sink({stripe_.data(), static_cast<size_t>((r1 - r0) * row_bytes)}, r1 - r0);
    after(r1);
    check_stop();
  }
  return result;
}

}  // namespace loongforge::convert
