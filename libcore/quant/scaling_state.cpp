#include "quant/scaling_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/fp8_format.h"

namespace loongforge::quant {
namespace {

using kernels::Elem;

// A step's counts fade to 1/e in 16 steps.
constexpr int kFadeShift = 4;

// Squared relative errors of one binade, by where it stands: averages over the binade's values,
// log-uniform, at 64 points (fixed, so that the choice is the same everywhere).
template <Elem kFp8>
double binade_cost(int binade) {  // scaled values in [2^binade, 2^(binade + 1))
  using F = kernels::Fp8<kFp8>;
  constexpr int kPoints = 64;
  const int smallest_normal = 1 - F::kBias;
  const double max = static_cast<double>(F::kMax);
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    // (i + 0.5) / 64 of the binade, linear: close enough to log-uniform within a factor of two.
    const double x = std::ldexp(1.0 + (i + 0.5) / kPoints, binade);
    if (x > max) {
      sum += (1.0 - max / x) * (1.0 - max / x);
      continue;
    }
    const int step_binade = std::max(binade, smallest_normal);
    const double step = std::ldexp(1.0, step_binade - F::kMantissaBits);
    if (x <= step / 2) {
      sum += 1.0;
    } else {
      sum += std::min(1.0, step * step / 12.0 / (x * x));
    }
  }
  return sum / kPoints;
}

constexpr int kLowest = -160, kHighest = 160;  // binades of scaled values that are told apart

template <Elem kFp8>
const std::array<double, kHighest - kLowest + 1>& cost_table() {
  static const auto table = [] {
    std::array<double, kHighest - kLowest + 1> costs{};
    for (int b = kLowest; b <= kHighest; ++b)
      costs[static_cast<size_t>(b - kLowest)] = binade_cost<kFp8>(b);
    return costs;
  }();
  return table;
}

template <Elem kFp8>
std::optional<int> choose(std::span<const int64_t> bins) {
  // Bin 0 holds zeros (and what fp32 itself has as subnormal), the last one infinities and NaN.
  int first = 1, last = kernels::kBinades - 2;
  while (first <= last && bins[static_cast<size_t>(first)] == 0) ++first;
  while (last >= first && bins[static_cast<size_t>(last)] == 0) --last;
  if (first > last) return std::nullopt;
  const auto& costs = cost_table<kFp8>();
  constexpr int top = kFp8 == Elem::kE5M2 ? 15 : 3;  // binade of the largest value
  int best = 0;
  double best_cost = 0;
  // From the exponent that saturates nothing downwards, to the one that saturates all.
  const int highest = std::max(last - 127 + 1 - top, kernels::kMinScaleExp);
  const int lowest = std::max(first - 127 - top - 1, kernels::kMinScaleExp);
  for (int e = highest; e >= lowest; --e) {
    double cost = 0;
    for (int b = first; b <= last; ++b) {
      const int scaled = std::clamp(b - 127 - e, kLowest, kHighest);
      cost += static_cast<double>(bins[static_cast<size_t>(b)]) *
              costs[static_cast<size_t>(scaled - kLowest)];
    }
    if (e == highest || cost < best_cost) {
      best = e;
      best_cost = cost;
    }
  }
  return best;
}

// The share of counted values that saturate at an exponent; binades as log-uniform as above.
double saturated_share(Elem fp8, std::span<const int64_t> bins, int exponent) {
  const bool e5m2 = fp8 == Elem::kE5M2;
  const int top = e5m2 ? 15 : 3;
  // Of its binade what no longer rounds to the largest value: above 1.8125, E5M2 above 1.875 of 2.
  const double of_top = e5m2 ? 0.125 : 0.1875;
  double all = 0, saturated = 0;
  for (int b = 1; b < kernels::kBinades - 1; ++b) {
    const auto count = static_cast<double>(bins[static_cast<size_t>(b)]);
    const int scaled = b - 127 - exponent;
    all += count;
    saturated += scaled > top ? count : scaled == top ? of_top * count : 0;
  }
  return all > 0 ? saturated / all : 0;
}

// What a factor shifts an exponent by: whole binades, rounded up.
int binades_of(float factor) {
  int e = 0;
  while (std::ldexp(1.0, e) < static_cast<double>(factor)) ++e;
  while (std::ldexp(1.0, e - 1) >= static_cast<double>(factor)) --e;
  return e;
}

}  // namespace

std::optional<int> best_exponent(Elem fp8, std::span<const int64_t> bins) {
  return fp8 == Elem::kE5M2 ? choose<Elem::kE5M2>(bins) : choose<Elem::kE4M3>(bins);
}

std::optional<int> ScalingState::exponent(const std::string& name, Elem fp8, bool gradient,
                                          float factor) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) return std::nullopt;
  if (wants_binades(gradient) && !it->second.binades.empty()) {
    const std::optional<int> e = best_exponent(fp8, it->second.binades);
    if (e) return *e + binades_of(factor);
  }
  const std::vector<float>& amax = it->second.amax;
  const float largest = amax.empty() ? 0.0f : *std::max_element(amax.begin(), amax.end());
  if (largest == 0.0f) return std::nullopt;
  return kernels::scale_exponent(fp8, largest, factor);
}

void ScalingState::mark_planned(StatsMap* stats) const {
  constexpr double kTimes = 2, kRare = 1e-2;
  for (auto& [name, each] : *stats) {
    each.planned = 0;
    const auto it = tensors_.find(name);
    if (!wants_binades(each.gradient) || each.counts.overflow == 0 || it == tensors_.end())
      continue;
    if (it->second.binades.empty()) continue;
    // Without the factor: what that saturates was asked for, not weighed up.
    const std::optional<int> e = best_exponent(each.elem, it->second.binades);
    if (!e) continue;
    const double share = kTimes * saturated_share(each.elem, it->second.binades, *e) + kRare;
    const auto expected = static_cast<int64_t>(share * static_cast<double>(each.elements));
    each.planned = std::min(each.counts.overflow, expected);
  }
}

void ScalingState::observe(const std::string& name, float amax) {
  float& seen = seen_amax_[name];
  if (std::isfinite(amax)) seen = std::max(seen, amax);
}

void ScalingState::observe_binades(const std::string& name, std::span<const int64_t> bins) {
  std::vector<int64_t>& seen = seen_binades_[name];
  seen.resize(bins.size());
  for (size_t b = 0; b < bins.size(); ++b) seen[b] += bins[b];
}

void ScalingState::end_step(const AllRanks& ranks, bool skipped) {
  std::vector<float> amax;
  for (const auto& [name, value] : seen_amax_) amax.push_back(value);
  ranks.max(amax);
  size_t at = 0;
  for (const auto& [name, value] : seen_amax_) {
    const float largest = amax[at++];
    if (skipped) continue;
    std::vector<float>& history = tensors_[name].amax;
    history.push_back(largest);
    if (static_cast<int64_t>(history.size()) > recipe_.window) history.erase(history.begin());
  }
  seen_amax_.clear();
  for (auto& [name, bins] : seen_binades_) {
    ranks.sum(bins);
    if (skipped) continue;
    std::vector<int64_t>& sum = tensors_[name].binades;
    sum.resize(bins.size());
    for (size_t b = 0; b < bins.size(); ++b) sum[b] += bins[b] - (sum[b] >> kFadeShift);
  }
  seen_binades_.clear();
}

void ScalingState::restore(std::map<std::string, Tensor> tensors) {
  tensors_ = std::move(tensors);
  for (auto& [name, tensor] : tensors_) {
    const auto size = static_cast<int64_t>(tensor.amax.size());
    if (size > recipe_.window)
      tensor.amax.erase(tensor.amax.begin(), tensor.amax.end() - recipe_.window);
  }
}

}  // namespace loongforge::quant
