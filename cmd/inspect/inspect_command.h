// `loongforge model-inspect`.
#pragma once

#include "cli/options.h"

namespace loongforge::cmd {

int run_inspect(const cli::Options& options);

}  // namespace loongforge::cmd
