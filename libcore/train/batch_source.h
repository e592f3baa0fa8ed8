// Where the micro-batches of a run's steps come from: samples that are all there, or a stream.
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/sample_stream.h"
#include "data/sample_table.h"
#include "graph/batch.h"
#include "support/json.h"
#include "train/batching.h"

namespace loongforge::train {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Reads what the next step begins with, where it is not in memory: what is wrong there is told
  // now.
  virtual void read_ahead() {}
  // Makes ready for a step (from 0) and returns its number of micro-batches.
  // REQUIRES steps one after the other, from 0 or from where go_to() led.
  virtual int64_t begin_step(int64_t step) = 0;
  virtual graph::Batch batch(int64_t i) const = 0;
  // What a checkpoint keeps so that the step after the last begun one can be found; null: nothing.
  virtual support::Json place() const = 0;
  virtual void go_to(const support::Json& place, const std::string& where) = 0;
};

// Rows of loaded samples in the order of a plan.
class PlannedBatches : public BatchSource {
 public:
  // All outlive the source.
  PlannedBatches(const data::SampleSet& samples, const std::vector<Row>& rows, const StepPlan& plan)
      : samples_(samples), rows_(rows), plan_(plan) {}
  int64_t begin_step(int64_t step) override;
  graph::Batch batch(int64_t i) const override;
  support::Json place() const override { return {}; }
  void go_to(const support::Json&, const std::string&) override {}

 private:
  const data::SampleSet& samples_;
  const std::vector<Row>& rows_;
  const StepPlan& plan_;
  std::vector<std::vector<uint32_t>> micro_batches_;
};

struct StreamShape {
  // Read, packed and shuffled together: a window. Of a stream whose passes have fewer, a pass.
  int64_t buffer_samples = 1;
  int64_t micro_rows = 1, rows_per_step = 1;
  bool packing = false;
  int64_t cutoff_len = 0;
  uint64_t seed = 0;
};

// Rows of a stream: windows of samples, each shuffled by itself. A step may reach over their
// borders. The place is that of the window and the number of its rows that were used.
class StreamedBatches : public BatchSource {
 public:
  StreamedBatches(data::SampleStream& stream, const StreamShape& shape);  // the stream outlives it
  void read_ahead() override;
  int64_t begin_step(int64_t step) override;
  graph::Batch batch(int64_t i) const override;
  support::Json place() const override;
  void go_to(const support::Json& place, const std::string& where) override;

 private:
  void read_window();

  data::SampleStream& stream_;
  const StreamShape shape_;
  support::Json window_place_;  // of the stream, before the window
  uint64_t window_ = 0;         // its number, from 0
  data::SampleSet samples_;     // of the window
  std::vector<Row> rows_;       // shuffled
  size_t used_ = 0;
  data::SampleSet step_samples_;
  std::vector<Row> step_rows_;
};

}  // namespace loongforge::train
