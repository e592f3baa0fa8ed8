#include "train/best_model.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace loongforge::train;

namespace {

struct After {
  double best;
  int64_t step, without;
  bool stops;
};
struct Case {
  std::vector<double> metrics;
  BestRules rules;
  std::vector<After> after;
};

}  // namespace

// What transformers 5.24's Trainer._determine_best_metric and EarlyStoppingCallback say of the same
// evaluations, one every ten steps.
TEST_CASE("the best evaluation and the patience are Hugging Face's") {
  const double nan = std::nan("");
  for (const Case& c : {
           Case{{3.0, 2.5, 2.6, 2.45, 2.45, 2.5, 2.0},
                {true, false, 3, 0},
                {{3, 10, 0, false},
                 {2.5, 20, 0, false},
                 {2.5, 20, 1, false},
                 {2.45, 40, 0, false},
                 {2.45, 40, 1, false},
                 {2.45, 40, 2, false},
                 {2, 70, 0, false}}},
           Case{{3.0, 2.95, 2.9, 2.5, 2.45},
                {true, false, 2, 0.1},
                {{3, 10, 0, false},
                 {2.95, 20, 1, false},
                 {2.9, 30, 2, true},
                 {2.5, 40, 0, false},
                 {2.45, 50, 1, false}}},
           Case{{1.0, 2.0, 1.5, 1.5, 3.0},
                {true, true, 2, 0},
                {{1, 10, 0, false},
                 {2, 20, 0, false},
                 {2, 20, 1, false},
                 {2, 20, 2, true},
                 {3, 50, 0, false}}},
           Case{{2.0, nan, 1.0},
                {true, false, 2, 0},
                {{2, 10, 0, false}, {2, 10, 1, false}, {1, 30, 0, false}}},
       }) {
    BestState state;
    for (size_t i = 0; i < c.metrics.size(); ++i) {
      note_evaluation(c.rules, static_cast<int64_t>(i + 1) * 10, c.metrics[i], &state);
      REQUIRE(state.metric.has_value());
      CHECK(*state.metric == c.after[i].best);
      CHECK(state.step == c.after[i].step);
      CHECK(state.without_improvement == c.after[i].without);
      CHECK(should_stop(c.rules, state) == c.after[i].stops);
    }
  }
}

TEST_CASE(
    "only what is tracked counts, NaN is never the best, the best checkpoint is one that was "
    "saved") {
  BestState state;
  note_evaluation({}, 10, 1.0, &state);
  CHECK(state == BestState());
  const BestRules rules{true, false, 0, 0};
  note_evaluation(rules, 10, std::nan(""), &state);
  CHECK_FALSE(state.metric.has_value());
  note_checkpoint(10, &state);
  CHECK(state.checkpoint_step == 0);
  note_evaluation(rules, 20, 2.0, &state);
  note_checkpoint(20, &state);
  note_evaluation(rules, 30, 1.0, &state);  // the best, but not saved
  note_checkpoint(40, &state);
  CHECK(state.step == 30);
  CHECK(state.checkpoint_step == 20);
  for (int i = 0; i < 50; ++i) note_evaluation(rules, 50 + i, 9.0, &state);
  CHECK_FALSE(should_stop(rules, state));  // no patience: never
}
