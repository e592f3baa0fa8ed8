// The option table of `loongforge model-inspect`.
#pragma once

#include "cli/options.h"

namespace loongforge::cmd {

// Error(kUsage) where nothing is asked for.
void check_inspect_options(const cli::Options& options);

}  // namespace loongforge::cmd
