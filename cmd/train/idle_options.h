// Options of `loongforge train` that are given and change nothing as the others stand: the one
// place that says so. What contradicts is refused where it is read (options.cpp); what depends on
// the model is told by graph::Parameters (notes()). Thread-safety: pure functions.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/options.h"
#include "train/options.h"

namespace loongforge::cmd {

// One line each: "--greater_is_better has no effect: nothing asks for the best model".
std::vector<std::string> without_effect(const cli::Options& options,
                                        const train::TrainOptions& run);

// Every option that has a rule here.
std::set<std::string> options_with_effect_rules();

}  // namespace loongforge::cmd
