// The options of `loongforge convert` as the library takes them. Pure functions of the parsed
// options.
#pragma once

#include "cli/options.h"
#include "convert/export.h"
#include "convert/import.h"

namespace loongforge::cmd {

// Both throw Error(kUsage) for what is missing or contradicts itself.
convert::ImportOptions import_options(const cli::Options& options, int threads);
convert::ExportOptions export_options(const cli::Options& options, int threads);

}  // namespace loongforge::cmd
