// The options of `loongforge debug`: what it is asked to do. Pure functions of the parsed options,
// but for the look at the CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/options.h"
#include "isa_verify/verify.h"

namespace loongforge::cmd {

enum class DebugAction : uint8_t { kIsa, kVerify, kReplay, kDiff };

// Throws Error(kUsage) when none is asked for, several are, or one with another's options.
DebugAction debug_action(const cli::Options& options);

// REQUIRES debug_action() is kVerify. Without an ISA named: those that can run here. Throws
// Error(kUsage) for one that cannot be run, unless it is only listed (--list).
isa_verify::VerifyOptions verify_options(const cli::Options& options);

}  // namespace loongforge::cmd
