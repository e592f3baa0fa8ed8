#include "cmd/commands.h"

namespace loongforge::cmd {

std::span<const Entry> entries() {
  static constexpr Entry kEntries[] = {
#define LF_COMMAND(name, group, summary) {#name, group, summary, &name##_command},
#define LF_BUILTIN(name, group, summary) {#name, group, summary, nullptr},
#include "cmd/commands.def"
#undef LF_COMMAND
#undef LF_BUILTIN
  };
  return kEntries;
}

}  // namespace loongforge::cmd
