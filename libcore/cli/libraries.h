// The libraries in this build, for bug reports. Pure function.
#pragma once

#include "base/api.h"
#include "support/json.h"

namespace loongforge::cli {

// {"CLI11": "2.1.2", ...}: of each library the version that runs, where it can tell, else the one
// whose headers were compiled.
LF_API support::Json library_versions();

}  // namespace loongforge::cli
