#include "data/mixture.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "base/error.h"
#include "support/counted.h"

namespace loongforge::data {
namespace {

constexpr size_t kDrawnAtOnce = 1024;
constexpr uint64_t kUnit = uint64_t{1} << 53;  // exact as a double
constexpr size_t kMostSamples = std::numeric_limits<uint32_t>::max();

std::vector<MixPick> concatenate(std::span<const size_t> sizes) {
  std::vector<MixPick> picks;
  for (size_t d = 0; d < sizes.size(); ++d)
    for (size_t i = 0; i < sizes[d]; ++i)
      picks.push_back({static_cast<uint32_t>(d), static_cast<uint32_t>(i)});
  return picks;
}

}  // namespace

DatasetDraw::DatasetDraw(std::span<const double> weights, uint64_t seed) : random_(seed) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double so_far = 0;
  for (const double weight : weights) {
    so_far += weight;
    up_to_.push_back(so_far / sum);
  }
  up_to_.back() = 1;
}

size_t DatasetDraw::at(uint64_t pass, uint64_t index) {
  if (drawn_.empty() || pass != pass_ || index < first_ || index - first_ >= drawn_.size()) {
    pass_ = pass;
    first_ = index / kDrawnAtOnce * kDrawnAtOnce;
    drawn_.resize(kDrawnAtOnce);
    random_.below(support::kStreamMix, pass, first_, kUnit, drawn_);
  }
  const double x = static_cast<double>(drawn_[index - first_]) / static_cast<double>(kUnit);
  size_t dataset = 0;
  while (x >= up_to_[dataset]) ++dataset;
  return dataset;
}

std::vector<MixPick> mix_datasets(std::span<const size_t> sizes, const MixRule& rule) {
  if (std::accumulate(sizes.begin(), sizes.end(), size_t{0}) >= kMostSamples)
    throw_usage("--dataset holds more than 2^32 - 1 samples", "use --streaming or --max_samples");
  if (rule.strategy == MixStrategy::kConcat) return concatenate(sizes);
  const std::vector<double> equal(sizes.size(), 1.0);
  DatasetDraw draw(rule.weights.empty() ? equal : rule.weights, rule.seed);
  std::vector<size_t> next(sizes.size(), 0);
  std::vector<bool> used_up(sizes.size(), false);
  size_t left = sizes.size();
  std::vector<MixPick> picks;
  for (uint64_t index = 0;; ++index) {
    const size_t d = draw.at(0, index);
    if (next[d] == sizes[d]) {
      if (rule.strategy == MixStrategy::kInterleaveUnder) return picks;
      if (!used_up[d] && --left == 0) return picks;
      used_up[d] = true;
      next[d] = 0;
    }
    if (picks.size() == kMostSamples)
      throw_usage("--mix_strategy interleave_over would repeat samples beyond 2^32",
                  "give the large datasets more weight, or use interleave_under");
    picks.push_back({static_cast<uint32_t>(d), static_cast<uint32_t>(next[d]++)});
  }
}

std::vector<bool> hold_out(size_t total, double val_size, uint64_t seed) {
  // 0.07 of 100 are 7, though the product lies a little above.
  const double wanted =
      val_size < 1 ? std::ceil(val_size * static_cast<double>(total) - 1e-9) : val_size;
  if (!(wanted < static_cast<double>(total)))
    throw_usage("--val_size leaves nothing to train on: the dataset has " +
                    support::counted(static_cast<int64_t>(total), "sample"),
                "hold out fewer");
  std::vector<uint32_t> order(total);
  std::iota(order.begin(), order.end(), 0u);
  support::Sm4Random(seed).shuffle(support::kStreamSplit, 0, std::span<uint32_t>(order));
  std::vector<bool> held(total, false);
  for (size_t i = 0; i < static_cast<size_t>(wanted); ++i) held[order[i]] = true;
  return held;
}

}  // namespace loongforge::data
