// The precision flags of train as a recipe: what they mean together, what contradicts, what they
// imply.
#pragma once

#include "cli/options.h"
#include "train/options.h"

namespace loongforge::cmd {

// Throws Error(kUsage) for flags that contradict each other.
void fill_precision(const cli::Options& options, train::TrainOptions* result);

}  // namespace loongforge::cmd
