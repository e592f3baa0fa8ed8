// What `loongforge convert` does: import_model() or export_model(), with progress on standard error
// and a report on standard output.
#pragma once

#include "cli/options.h"

namespace loongforge::cmd {

int run_convert(const cli::Options& options);  // the exit code; throws Error

}  // namespace loongforge::cmd
