// The options of `loongforge debug`: what it is asked to do. Pure functions of the parsed options.
#pragma once

#include <cstdint>

#include "cli/options.h"

namespace loongforge::cmd {

enum class DebugAction : uint8_t { kIsa };

// Throws Error(kUsage) when none is asked for.
DebugAction debug_action(const cli::Options& options);

}  // namespace loongforge::cmd
