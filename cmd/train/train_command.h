// What `loongforge train` does: train::run_training() with its results on standard output and its
// steps on standard error.
#pragma once

#include "cli/options.h"

namespace loongforge::cmd {

int run_train(const cli::Options& options);  // the exit code; throws Error

}  // namespace loongforge::cmd
