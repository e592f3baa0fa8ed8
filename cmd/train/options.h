// The options of `loongforge train` as the library takes them. Pure functions of the parsed
// options.
#pragma once

#include "cli/options.h"
#include "train/options.h"

namespace loongforge::cmd {

// Throws Error(kUsage) for what is missing or contradicts itself.
train::TrainOptions train_options(const cli::Options& options);

}  // namespace loongforge::cmd
