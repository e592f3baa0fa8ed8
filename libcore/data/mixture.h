// How several datasets become one, and which samples are held out: functions of sizes, weights and
// seed alone, so that they are the same on every rank and whenever a run is continued.
// Thread-safety: DatasetDraw belongs to one thread; the rest are pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/api.h"
#include "data/dataset_choices.h"
#include "support/sm4.h"

namespace loongforge::data {

// Which dataset the next sample comes from.
class LF_API DatasetDraw {
 public:
  // weights: one a dataset, above zero; they need not add up to 1.
  DatasetDraw(std::span<const double> weights, uint64_t seed);
  // Draw number index of a pass over the data.
  size_t at(uint64_t pass, uint64_t index);

 private:
  std::vector<double> up_to_;  // of the unit interval, for each dataset
  support::Sm4Random random_;
  std::vector<uint64_t> drawn_;  // numbers first_ ... of pass_
  uint64_t pass_ = 0, first_ = 0;
};

struct MixRule {
  MixStrategy strategy = MixStrategy::kConcat;
  std::vector<double> weights{};  // empty: all equal
  uint64_t seed = 0;
};

struct MixPick {
  uint32_t dataset = 0, sample = 0;
};

// The samples in their order. A draw that meets a dataset with nothing left ends the mixture
// (under), or lets that dataset begin again unless every one was used up (over). Error(kUsage) when
// the mixture would hold 2^32 samples.
// REQUIRES sizes above zero; weights as many as sizes, or none.
LF_API std::vector<MixPick> mix_datasets(std::span<const size_t> sizes, const MixRule& rule);

// Which of total samples are held out for validation: as many as val_size says, a share (below 1,
// rounded up) or a count. Error(kUsage) when none would be left to train on.
LF_API std::vector<bool> hold_out(size_t total, double val_size, uint64_t seed);

}  // namespace loongforge::data
