// What is kept of a run: its figures by step and the losses of the held-out samples.
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/json.h"

namespace loongforge::bench {

struct RunRecord {
  std::vector<double> loss, grad_norm, step_ms;  // [step - 1]
  double eval_before = 0, eval_after = 0;        // of the held-out samples
  double memory_mb = 0;                          // the largest resident size after a step
};

// Out of the metrics.jsonl of a run; of a step that a resumed run took again the last line counts.
// Nothing where a step or an evaluation (before the first step, after the last) is missing: the run
// is not finished.
std::optional<RunRecord> read_metrics(const std::filesystem::path& file, int64_t steps);

support::Json record_json(const RunRecord& record);
RunRecord record_of(const support::Json& json, const std::string& where);

}  // namespace loongforge::bench
