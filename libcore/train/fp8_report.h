// What a step's rounding to FP8 says in its report.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "quant/statistics.h"
#include "support/json.h"
#include "train/step_report.h"

namespace loongforge::train {

// Overflow and underflow over all tensors, the least headroom, saturated gradients.
void fill_fp8_facts(const quant::StatsMap& stats, StepFacts* facts);
// The precision flags of a run as one line: what a checkpoint remembers of them.
std::string recipe_text(const TrainOptions& options);
// Tensors that saturated, for OverflowReporter.
std::map<std::string, int64_t> saturated_tensors(const quant::StatsMap& stats);
// {"<tensor>": {"format", "overflow", "underflow", "headroom", "amax", "rel_rms", "error_std"}};
// --fp8_stats.
support::Json fp8_stats_json(const quant::StatsMap& stats);

}  // namespace loongforge::train
