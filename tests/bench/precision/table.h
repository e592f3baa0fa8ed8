// The figures of the proof: recipes against the bf16 runs of the same seeds, over which batches and
// their order are equal. Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/precision/plan.h"
#include "bench/precision/record.h"

namespace loongforge::bench {

inline constexpr int64_t kWindow = 20;  // the losses whose mean is compared

// By recipe and seed.
using Records = std::map<std::string, std::map<int64_t, RunRecord>>;

// Of one recipe, measured by itself (not in the runs, which share the machine).
struct Speed {
  double tokens_per_s = 0, step_ms = 0, peak_mb = 0;
};
using Speeds = std::map<std::string, Speed>;

struct Spread {
  double mean = 0, low = 0, high = 0;
  int64_t count = 0;
};
Spread spread_of(const std::vector<double>& values);

double mean_of_last(const std::vector<double>& values, int64_t count);
// values[i] averaged with up to window - 1 before it.
std::vector<double> trailing_mean(const std::vector<double>& values, int64_t window);
// 100 (a / b - 1)
double percent(double a, double b);
// Mean over the steps of |a / b - 1|, in percent.
double mean_deviation(const std::vector<double>& a, const std::vector<double>& b);
// The first step whose trailing mean is at or below the level; none: never.
std::optional<int64_t> steps_to(const std::vector<double>& loss, double level);
// The given loss: what the bf16 run's trailing mean is after three quarters of its steps.
double level_of(const RunRecord& baseline);

struct Row {
  std::string recipe, title;
  int64_t runs = 0;
  Spread last, window;   // loss of the last step, mean of the last kWindow
  Spread gap, eval_gap;  // percent, of the window's mean and the held-out loss, pair by pair
  std::map<int64_t, double> gaps, eval_gaps;  // by seed
  Spread eval_before, eval_after;
  Spread norm_deviation;  // percent
  Spread steps_to_level;  // of the runs that reach it
  double memory_mb = 0;
};
// The recipes that have finished runs. Gaps are of the seeds whose bf16 run is finished as well.
std::vector<Row> compare(const Part& part, const Records& records);

// Markdown. Seconds to the level: its steps at the speed that was measured; without speeds those
// columns are empty.
std::string main_table(const Part& part, const std::vector<Row>& rows, const Speeds& speeds);
std::string seed_table(const std::vector<Row>& rows);

// The barred recipe's gap beside its bar; nothing before the pairs of all seeds are finished. A
// loss that is lower than bf16's by more than the bar is not worse, but not the same either: it is
// told.
struct Verdict {
  bool kept = false;
  std::string line;
};
std::optional<Verdict> judge(const Part& part, const std::vector<Row>& rows, int64_t seeds);

}  // namespace loongforge::bench
