// `loongforge debug --isa-verify`, `--replay` and `--diff`: run, print a table or one JSON object.
// Return the exit code: 1 where results differ. Throw Error.
#pragma once

#include "cli/options.h"

namespace loongforge::cmd {

int run_isa_verify(const cli::Options& options);
int run_replay(const cli::Options& options);
int run_diff(const cli::Options& options);

}  // namespace loongforge::cmd
