// Which samples make which micro-batch of which step: a function of seed, sizes and step alone, so
// that a run can be continued anywhere and on any number of ranks. Thread-safety: immutable once
// built.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/sample_table.h"
#include "graph/batch.h"

namespace loongforge::train {

using Row = std::vector<uint32_t>;  // samples that share a row: one, or several with packing

// packing: best fit of samples, longest first, into rows of up to cutoff_len tokens. A document in
// a packed row has the same bits as alone.
std::vector<Row> make_rows(const data::SampleSet& samples, bool packing, int64_t cutoff_len);

graph::Batch collate(const data::SampleSet& samples, std::span<const Row> rows);

class StepPlan {
 public:
  // rows_per_step: the global batch. REQUIRES rows > 0, micro_rows >= 1, rows_per_step >=
  // micro_rows.
  StepPlan(int64_t rows, int64_t micro_rows, int64_t rows_per_step, double epochs,
           int64_t max_steps, uint64_t seed);

  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int64_t total_steps() const { return total_steps_; }
  double epoch_of(int64_t step) const {
    return static_cast<double>(step) / static_cast<double>(steps_per_epoch_);
  }
  // Row numbers of each micro-batch of step (from 0). The last step of an epoch may be smaller.
  std::vector<std::vector<uint32_t>> micro_batches(int64_t step) const;

 private:
  const std::vector<uint32_t>& order(int64_t epoch) const;

  int64_t rows_, micro_rows_, rows_per_step_, steps_per_epoch_, total_steps_;
  uint64_t seed_;
  mutable int64_t cached_epoch_ = -1;  // one thread uses a plan
  mutable std::vector<uint32_t> cached_order_;
};

}  // namespace loongforge::train
