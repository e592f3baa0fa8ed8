// Where a run's figures go besides the screen: metrics.jsonl and TensorBoard event files in
// output_dir (--report_to). They hold times and are no part of what is compared between runs.
// Thread-safety: one thread.
#pragma once

#include <filesystem>
#include <optional>

#include "base/file.h"
#include "formats/tensorboard_events.h"
#include "support/json.h"
#include "train/step_report.h"

namespace loongforge::train {

inline constexpr const char* kMetricsFile = "metrics.jsonl";

// Takes out of a metrics.jsonl the records of steps above last_step, which the run will take again,
// and a torn last line. Other lines stay as they are. Atomic: a file that another program follows
// is replaced by another. Absent: nothing is done.
void cut_metrics(const std::filesystem::path& file, int64_t last_step);

class MetricSinks {
 public:
  // first_step: the next one that will be reported; what TensorBoard knows from it on is of a run
  // that was cut off.
  MetricSinks(const std::filesystem::path& output_dir, bool jsonl, bool tensorboard,
              int64_t first_step);

  void step(const StepFacts& facts);
  void evaluation(const EvalFacts& facts);

 private:
  void line(const support::Json& json);

  std::optional<File> jsonl_;
  std::optional<formats::TensorboardWriter> tensorboard_;
};

}  // namespace loongforge::train
