// What is told of a step: a line of text or one JSON object; overflow messages, summed and
// rate-limited. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "support/json.h"
#include "train/options.h"

namespace loongforge::train {

struct StepFacts {
  int64_t step = 0, total_steps = 0;  // steps done
  double epoch = 0, loss = 0, lr = 0, grad_norm = 0;
  double tokens_per_s = 0, step_ms = 0, eta_s = 0;
  int64_t mem_mb = 0;        // resident
  double fp8_overflow = 0;   // share of saturated elements among those quantised
  double fp8_underflow = 0;  // share of those that became 0
  std::optional<double>
      fp8_headroom;  // log2(largest FP8 value / largest scaled one), the least of all tensors
  int64_t saturated_gradients =
      0;              // elements of gradients that saturated: the step is clipped, and says so
  bool clips = true;  // --max_grad_norm is not 0
  support::Json fp8_tensors;  // --fp8_stats
  bool skipped = false;       // gradients were not finite
};

struct EvalFacts {
  int64_t step = 0, tokens = 0;
  double epoch = 0, loss = 0, perplexity = 0;
};

support::Json step_json(const StepFacts& facts);  // step, loss, lr, grad_norm, tokens_per_s,
                                                  // step_ms, mem_mb, fp8_overflow, ...
std::string step_text(const StepFacts& facts);
support::Json eval_json(const EvalFacts& facts);
std::string eval_text(const EvalFacts& facts);
// Their entries in trainer_state.json, with the names that scripts for Hugging Face's know.
support::Json step_history(const StepFacts& facts);
support::Json eval_history(const EvalFacts& facts);

// "FP8 overflow detected in layer.<name>": at most one report every kInterval steps, counts summed
// in between.
class OverflowReporter {
 public:
  explicit OverflowReporter(OverflowLogLevel level) : level_(level) {}
  void add(int64_t step, const std::map<std::string, int64_t>& by_layer);

 private:
  static constexpr int64_t kInterval = 50;
  OverflowLogLevel level_;
  std::map<std::string, int64_t> pending_;
  int64_t last_report_ = -kInterval;
};

}  // namespace loongforge::train
