// The list of commands.def as data. Thread-safety: constants.
#pragma once

#include <span>
#include <string_view>

#include "cli/options.h"

namespace loongforge::cmd {

struct Entry {
  const char* name;
  const char* folder;  // under cmd/; nullptr: the dispatcher's own
  const char* group;
  const char* summary;
  const cli::Command* command;  // nullptr: the dispatcher's own
};

// In the order of commands.def.
std::span<const Entry> entries();

#define LF_COMMAND_NAMED(folder, name, group, summary) extern const cli::Command folder##_command;
#define LF_COMMAND(name, group, summary) LF_COMMAND_NAMED(name, #name, group, summary)
#define LF_BUILTIN(name, group, summary)
#include "cmd/commands.def"
#undef LF_COMMAND
#undef LF_COMMAND_NAMED
#undef LF_BUILTIN

// The summary of a command, for its own table. REQUIRES the name stands in commands.def.
constexpr const char* summary_of(std::string_view wanted) {
#define LF_COMMAND_NAMED(folder, name, group, summary) \
  if (wanted == name) return summary;
#define LF_COMMAND(name, group, summary) LF_COMMAND_NAMED(name, #name, group, summary)
#define LF_BUILTIN(name, group, summary)
#include "cmd/commands.def"
#undef LF_COMMAND
#undef LF_COMMAND_NAMED
#undef LF_BUILTIN
  throw "not in commands.def";
}

}  // namespace loongforge::cmd
