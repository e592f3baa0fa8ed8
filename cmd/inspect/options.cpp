#include "cmd/inspect/options.h"

#include "base/error.h"
#include "cmd/commands.h"

namespace loongforge::cmd {
namespace {

using cli::OptionType;

constexpr const char* kWhat = "What to show";
constexpr const char* kReport = "Report";

constexpr cli::Option kTable[] = {
    {"ops", OptionType::kFlag, "false", nullptr, kWhat,
     "list every FP8 operation, its direction, its format and the instruction sets that have it"},
    {"json", OptionType::kFlag, "false", nullptr, kReport, "print the report as one JSON object"},
};

}  // namespace

constinit const cli::Command inspect_command = {"model-inspect", summary_of("model-inspect"),
                                                "--ops [--json]", kTable};

void check_inspect_options(const cli::Options& options) {
  if (!options.flag("ops")) throw_usage("nothing to show", "ask for --ops; -h lists the options");
}

}  // namespace loongforge::cmd
