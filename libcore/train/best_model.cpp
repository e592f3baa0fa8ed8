#include "train/best_model.h"

#include <cmath>

namespace loongforge::train {

void note_evaluation(const BestRules& rules, int64_t step, double metric, BestState* state) {
  if (!rules.tracked) return;
  const auto better = [&](double than) {
    return rules.greater_is_better ? metric > than : metric < than;
  };
  const bool first = !state->metric && !std::isnan(metric);
  const bool improves = first || (state->metric && better(*state->metric) &&
                                  std::abs(metric - *state->metric) > rules.threshold);
  state->without_improvement = improves ? 0 : state->without_improvement + 1;
  if (!first && !(state->metric && better(*state->metric))) return;
  state->metric = metric;
  state->step = step;
}

void note_checkpoint(int64_t step, BestState* state) {
  if (state->step == step && step > 0) state->checkpoint_step = step;
}

bool should_stop(const BestRules& rules, const BestState& state) {
  return rules.tracked && rules.patience > 0 && state.without_improvement >= rules.patience;
}

}  // namespace loongforge::train
