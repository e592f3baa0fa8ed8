#include "cmd/debug/debug_command.h"

#include "cli/isa_report.h"
#include "cli/output.h"
#include "cmd/debug/isa_verify_command.h"
#include "cmd/debug/options.h"

namespace loongforge::cmd {

int run_debug(const cli::Options& options) {
  switch (debug_action(options)) {
    case DebugAction::kIsa: {
      const support::Json report = cli::isa_json();
      cli::print(options.flag("json") ? report.dump() + "\n" : cli::isa_text(report));
      return 0;
    }
    case DebugAction::kVerify:
      return run_isa_verify(options);
    case DebugAction::kReplay:
      return run_replay(options);
    case DebugAction::kDiff:
      return run_diff(options);
  }
  return 0;
}

}  // namespace loongforge::cmd
