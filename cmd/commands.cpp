#include "cmd/commands.h"

namespace loongforge::cmd {

std::span<const Entry> entries() {
  static constexpr Entry kEntries[] = {
#define LF_COMMAND_NAMED(folder, name, group, summary) \
  {name, #folder, group, summary, &folder##_command},
#define LF_COMMAND(name, group, summary) LF_COMMAND_NAMED(name, #name, group, summary)
#define LF_BUILTIN(name, group, summary) {#name, nullptr, group, summary, nullptr},
#include "cmd/commands.def"
#undef LF_COMMAND
#undef LF_COMMAND_NAMED
#undef LF_BUILTIN
  };
  return kEntries;
}

}  // namespace loongforge::cmd
