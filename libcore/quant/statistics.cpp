#include "quant/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "kernels/fp8_format.h"

namespace loongforge::quant {
namespace {

using kernels::Elem;

double share(int64_t part, int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0.0;
}

}  // namespace

void TensorStats::add(const TensorStats& other) noexcept {
  elem = other.elem;
  gradient = other.gradient;
  elements += other.elements;
  counts.add(other.counts);
  planned += other.planned;
  error.add(other.error);
}

double TensorStats::overflow_share() const noexcept { return share(counts.overflow, elements); }

double TensorStats::underflow_share() const noexcept { return share(counts.zero, elements); }

double TensorStats::headroom() const noexcept {
  if (!(counts.peak > 0.0f)) return std::numeric_limits<double>::quiet_NaN();
  const float largest =
      elem == Elem::kE5M2 ? kernels::Fp8<Elem::kE5M2>::kMax : kernels::Fp8<Elem::kE4M3>::kMax;
  return std::log2(static_cast<double>(largest) / static_cast<double>(counts.peak));
}

double TensorStats::relative_rms() const noexcept {
  return error.value_squares > 0 ? std::sqrt(error.error_squares / error.value_squares) : 0.0;
}

double TensorStats::quant_error_std() const noexcept {
  return error.values > 0 ? std::sqrt(error.relative_squares / static_cast<double>(error.values))
                          : 0.0;
}

void add_stats(StatsMap* sum, const StatsMap& other) {
  for (const auto& [name, stats] : other) (*sum)[name].add(stats);
}

int64_t saturated_gradients(const StatsMap& stats) noexcept {
  int64_t n = 0;
  for (const auto& [name, each] : stats)
    if (each.gradient) n += each.counts.overflow - each.planned;
  return n;
}

std::string stats_table(const StatsMap& stats) {
  size_t width = 6;
  for (const auto& [name, each] : stats) width = std::max(width, name.size());
  const int w = static_cast<int>(width);
  char line[512];
  std::snprintf(line, sizeof line, "%-*s  %-6s %10s %10s %9s %10s %10s %10s\n", w, "tensor",
                "format", "overflow", "underflow", "headroom", "rel_rms", "error_std", "amax");
  std::string text = line;
  for (const auto& [name, s] : stats) {
    std::snprintf(line, sizeof line, "%-*s  %-6s %10.2e %10.2e %9.2f %10.2e %10.2e %10.2e\n", w,
                  name.c_str(), s.elem == Elem::kE5M2 ? "E5M2" : "E4M3", s.overflow_share(),
                  s.underflow_share(), s.headroom(), s.relative_rms(), s.quant_error_std(),
                  static_cast<double>(s.counts.amax));
    text += line;
  }
  return text;
}

}  // namespace loongforge::quant
