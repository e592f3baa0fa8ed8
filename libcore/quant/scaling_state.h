// What delayed scaling remembers: per activation tensor the largest values of the last steps, and
// for adaptive bias a histogram of the gradients' binades.
//
// A step's scales follow from the steps before it alone; what the step saw counts after end_step().
// So the micro-batches of a step share their scales, in whatever order and on whatever rank they
// ran. A tensor without history has no exponent: it is scaled by its own largest value.
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/api.h"
#include "kernels/quant.h"
#include "quant/recipe.h"
#include "quant/statistics.h"

namespace loongforge::quant {

// Every rank's values combined in place; on one rank they stay as they are.
struct AllRanks {
  std::function<void(std::span<float>)> max = [](std::span<float>) {};
  std::function<void(std::span<int64_t>)> sum = [](std::span<int64_t>) {};
};

// Adaptive bias: rows of a gradient whose binades are counted, one in so many.
inline constexpr int64_t kBiasRowStep = 16;

// The exponent e that codes a histogram of binades with the smallest mean of squared relative
// errors: per binade that of rounding where it falls into the format's normal range, more where it
// is subnormal, 1 where it becomes 0, ((largest / x) - 1)^2 where it saturates. Of equal ones the
// largest. nullopt: nothing but zeros.
LF_API std::optional<int> best_exponent(kernels::Elem fp8, std::span<const int64_t> bins);

class LF_API ScalingState {
 public:
  struct Tensor {
    std::vector<float> amax;       // of the last steps, the oldest first
    std::vector<int64_t> binades;  // adaptive bias: sum over steps, each 15/16 of the step after
  };

  explicit ScalingState(const Recipe& recipe) : recipe_(recipe) {}

  // The scale of `name` in this step. factor: what amax is multiplied by.
  std::optional<int> exponent(const std::string& name, kernels::Elem fp8, bool gradient,
                              float factor) const;
  // Adaptive bias saturates rare elements because all others are better coded then. Of every
  // gradient whose exponent it chose: what saturated and is within twice the share that the counted
  // binades foretell, and one in 100, is planned; what is beyond that the rule did not foresee.
  // Before end_step(), which counts what these gradients were.
  void mark_planned(StatsMap* stats) const;
  bool wants_binades(bool gradient) const noexcept { return recipe_.adaptive_bias && gradient; }
  // What a micro-batch saw; names may come several times. Infinite amax: not remembered.
  void observe(const std::string& name, float amax);
  void observe_binades(const std::string& name, std::span<const int64_t> bins);
  // The step was made (or skipped: what it saw is forgotten). Every rank calls it with the same
  // names.
  void end_step(const AllRanks& ranks, bool skipped);

  // The state that a checkpoint holds. restore() keeps the newest `window` of each.
  const std::map<std::string, Tensor>& tensors() const noexcept { return tensors_; }
  void restore(std::map<std::string, Tensor> tensors);

 private:
  Recipe recipe_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, float> seen_amax_;
  std::map<std::string, std::vector<int64_t>> seen_binades_;
};

}  // namespace loongforge::quant
