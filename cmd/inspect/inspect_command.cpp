#include "cmd/inspect/inspect_command.h"

#include "cli/op_report.h"
#include "cli/output.h"
#include "cmd/inspect/options.h"

namespace loongforge::cmd {

int run_inspect(const cli::Options& options) {
  check_inspect_options(options);
  const support::Json report = cli::ops_json();
  cli::print(options.flag("json") ? report.dump() + "\n" : cli::ops_text(report));
  return 0;
}

}  // namespace loongforge::cmd
