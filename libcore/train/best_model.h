// Which evaluation was the best, and whether to stop because none gets better any more: the rules
// of Hugging Face's Trainer and EarlyStoppingCallback. Thread-safety: values.
#pragma once

#include <cstdint>
#include <optional>

namespace loongforge::train {

struct BestRules {
  bool tracked = false;  // something depends on the best model
  bool greater_is_better = false;
  int64_t patience = 0;  // evaluations in a row that may fail to improve; 0: never stops
  double threshold = 0;  // what counts as improving is more than this
};

struct BestState {
  std::optional<double> metric;
  int64_t step = 0;             // where it was measured; 0: none yet
  int64_t checkpoint_step = 0;  // the best one among those saved; 0: none yet
  int64_t without_improvement = 0;
  friend bool operator==(const BestState&, const BestState&) = default;
};

// As there: an improvement below the threshold is the new best and still counts as none; NaN is
// never the best.
void note_evaluation(const BestRules& rules, int64_t step, double metric, BestState* state);
// A checkpoint of `step` is being written.
void note_checkpoint(int64_t step, BestState* state);
bool should_stop(const BestRules& rules, const BestState& state);

}  // namespace loongforge::train
