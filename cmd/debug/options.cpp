#include "cmd/debug/options.h"

#include "base/error.h"
#include "cmd/commands.h"

namespace loongforge::cmd {
namespace {

using cli::OptionType;

constexpr const char* kAction = "Action (one of them)";
constexpr const char* kReport = "Report";

constexpr cli::Option kTable[] = {
    {"isa", OptionType::kFlag, "false", nullptr, kAction,
     "list the instruction sets found, available and used"},
    {"json", OptionType::kFlag, "false", nullptr, kReport, "print the report as one JSON object"},
};

}  // namespace

constinit const cli::Command debug_command = {"debug", summary_of("debug"), "--isa [--json]",
                                              kTable};

DebugAction debug_action(const cli::Options& options) {
  if (!options.flag("isa")) throw_usage("nothing to do", "ask for --isa; -h lists the options");
  return DebugAction::kIsa;
}

}  // namespace loongforge::cmd
