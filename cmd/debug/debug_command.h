// What `loongforge debug` does: one action a call, its report on standard output.
#pragma once

#include "cli/options.h"

namespace loongforge::cmd {

int run_debug(const cli::Options& options);  // the exit code; throws Error

}  // namespace loongforge::cmd
