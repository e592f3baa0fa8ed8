// The bash completion script, made from the command list and the option tables. Pure functions.
#pragma once

#include <span>
#include <string>

#include "base/api.h"
#include "cli/options.h"

namespace loongforge::cli {

// words: what stands after "loongforge" besides the commands (version, help, completion).
LF_API std::string bash_completion(std::span<const Command* const> commands,
                                   std::span<const char* const> words);

}  // namespace loongforge::cli
