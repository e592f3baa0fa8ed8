// The frame of every command: reads the options, answers -h, --help and --version, applies
// LOONGFORGE_ISA, runs the body, catches once and turns what happened into an exit code.
#pragma once

#include <string>

#include "base/api.h"
#include "cli/options.h"

namespace loongforge::cli {

using CommandBody = int (*)(const Options& options);

// Returns what the body returned, or the code of the Error that was thrown, printed on one line of
// standard error as "loongforge <command>: <where>: <what>; <hint>". A full disk behind
// standard output is an error too; one that nobody reads any more ends the command silently.
LF_API int run_command(const Command& command, int argc, char** argv, CommandBody body);

// The same frame around something that reads its own words (the dispatcher). name: what stands
// after "loongforge ".
LF_API int run_guarded(const char* name, int (*body)(void* context), void* context);

// LOONGFORGE_ISA (its value, or nullptr when unset). Error(kUsage) that lists what is available for
// any other name.
LF_API void apply_isa(const char* name);

// --threads, or one per core within affinity mask and cgroup quota.
LF_API int thread_count(const Options& options);

}  // namespace loongforge::cli
