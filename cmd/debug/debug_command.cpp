#include "cmd/debug/debug_command.h"

#include "cli/isa_report.h"
#include "cli/output.h"
#include "cmd/debug/options.h"

namespace loongforge::cmd {

int run_debug(const cli::Options& options) {
  switch (debug_action(options)) {
    case DebugAction::kIsa: {
      const support::Json report = cli::isa_json();
      cli::print(options.flag("json") ? report.dump() + "\n" : cli::isa_text(report));
      return 0;
    }
  }
  return 0;
}

}  // namespace loongforge::cmd
