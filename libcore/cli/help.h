// What -h prints: usage line, then the options by group, wrapped to the width given. Pure
// functions.
#pragma once

#include <span>
#include <string>

#include "base/api.h"
#include "cli/options.h"

namespace loongforge::cli {

// table: full_table() of the command.
LF_API std::string short_help(const Command& command, std::span<const Option> table,
                              int width = 80);

}  // namespace loongforge::cli
