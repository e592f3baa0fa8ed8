// What quantising did to a tensor: counted in every pass, and what it cost where that is asked for.
// With just-in-time scales overflow alone says nothing, so underflow, headroom and error stand
// beside it.
//
// Sums are added in a fixed order by their owners, so they do not depend on threads or ranks.
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/api.h"
#include "kernels/quant.h"

namespace loongforge::quant {

struct LF_API TensorStats {
  kernels::Elem elem = kernels::Elem::kE4M3;
  bool gradient = false;  // of dY: its saturation is the clip signal
  int64_t elements = 0;
  kernels::QuantCounts counts;
  int64_t planned = 0;        // of counts.overflow: those that adaptive bias gives up by its rule
  kernels::QuantError error;  // empty: not measured

  void add(const TensorStats& other) noexcept;
  double overflow_share() const noexcept;   // saturated elements
  double underflow_share() const noexcept;  // non-zero elements that became 0
  // log2(largest FP8 value / largest scaled magnitude), in the tightest block: 0 is full, below 0
  // saturated. NaN for a tensor of zeros.
  double headroom() const noexcept;
  // sqrt(sum (q - x)^2 / sum x^2): how much of the tensor's energy the error is.
  double relative_rms() const noexcept;
  // sqrt(mean((q - x) / x)^2) over the non-zero x: the standard deviation of the relative error
  // about 0. E4M3 within its normal range: 0.026; an element that became 0 counts 1.
  double quant_error_std() const noexcept;
};

// By tensor: "<layer>.weight", "<layer>.input", "<layer>.grad".
using StatsMap = std::map<std::string, TensorStats>;
LF_API void add_stats(StatsMap* sum, const StatsMap& other);
// Saturated elements of gradients, without those that adaptive bias gives up.
LF_API int64_t saturated_gradients(const StatsMap& stats) noexcept;
// A line of names, then one a tensor.
LF_API std::string stats_table(const StatsMap& stats);

}  // namespace loongforge::quant
