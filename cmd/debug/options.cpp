#include "cmd/debug/options.h"

#include "base/error.h"
#include "cmd/commands.h"

namespace loongforge::cmd {
namespace {

using cli::OptionType;

constexpr const char* kAction = "Action (one of them)";
constexpr const char* kOperations = "Operations";
constexpr const char* kReport = "Report";

constexpr cli::Option kTable[] = {
    {"isa", OptionType::kFlag, "false", nullptr, kAction,
     "list the instruction sets found, available and used"},
    {"isa-verify", OptionType::kFlagOrChoice, nullptr, "lsx|lasx|avx2|avx512", kAction,
     "run vector operations against scalar semantics (default: every set of this CPU)"},
    {"replay", OptionType::kPath, nullptr, "FILE", kAction,
     "run the vectors of a file again, and no others"},
    {"diff", OptionType::kPath, nullptr, "FILE", kAction,
     "compare what two chips made of the same vectors; needs --against"},

    {"against", OptionType::kPath, nullptr, "FILE", kOperations, "diff: the other chip's file"},
    {"only", OptionType::kList, nullptr, "PATTERN,...", kOperations,
     "isa-verify: operations whose mnemonic matches, as xvfmadd.*"},
    {"ops", OptionType::kPath, nullptr, "FILE", kOperations,
     "isa-verify, replay: a table of further operations, or of other rows for known ones"},
    {"vectors", OptionType::kInt, "256", "[1,100000000]", kOperations,
     "isa-verify: executions of each operation; one per immediate at least"},
    {"seed", OptionType::kInt, "1", "[0,inf)", kOperations,
     "isa-verify: what the operands are drawn from"},

    {"list", OptionType::kFlag, "false", nullptr, kReport,
     "isa-verify: show the table of operations, run none"},
    {"save", OptionType::kPath, nullptr, "FILE", kReport,
     "isa-verify: write failing vectors to a new file, at most 64 of an operation"},
    {"save-all", OptionType::kFlag, "false", nullptr, kReport,
     "with --save: write every vector, failing or not"},
    {"json", OptionType::kFlag, "false", nullptr, kReport, "print the report as one JSON object"},
};

}  // namespace

constinit const cli::Command debug_command = {
    "debug", summary_of("debug"),
    "--isa [--json]\n"
    "       loongforge debug --isa-verify [lsx|lasx|avx2|avx512] [--only PATTERN,...] [--save "
    "FILE] [options]\n"
    "       loongforge debug --replay FILE | --diff FILE --against FILE [options]",
    kTable};

DebugAction debug_action(const cli::Options& options) {
  const bool verify = options.has("isa-verify") && options.text("isa-verify") != "false";
  const bool asked[] = {options.flag("isa"), verify, options.has("replay"), options.has("diff")};
  int actions = 0;
  auto action = DebugAction::kIsa;
  for (int i = 0; i < 4; ++i) {
    if (!asked[i]) continue;
    ++actions;
    action = static_cast<DebugAction>(i);
  }
  constexpr const char* kAsk = "ask for --isa, --isa-verify, --replay or --diff; -h lists them";
  if (actions == 0) throw_usage("nothing to do", kAsk);
  if (actions > 1) throw_usage("several things to do at once", kAsk);
  if (action != DebugAction::kVerify)
    options.refuse_given({"only", "vectors", "seed", "list", "save", "save-all"},
                         "counts for --isa-verify only", "leave it out");
  if (action != DebugAction::kVerify && action != DebugAction::kReplay)
    options.refuse_given({"ops"}, "counts for --isa-verify and --replay only", "leave it out");
  if (action != DebugAction::kDiff)
    options.refuse_given({"against"}, "counts for --diff only", "leave it out");
  if (options.flag("save-all") && !options.has("save"))
    throw_usage("--save-all without --save", "name the file by --save FILE");
  if (options.flag("list"))
    options.refuse_given({"save", "vectors", "seed"},
                         "has no effect with --list, which runs nothing", "leave it out");
  return action;
}

isa_verify::VerifyOptions verify_options(const cli::Options& options) {
  using kernels::Isa;
  isa_verify::VerifyOptions result;
  const std::string& named = options.text("isa-verify");
  const bool list = options.flag("list");
  if (named == "true") {
    for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kLsx, Isa::kLasx})
      if (isa_verify::can_run(isa)) result.isas.push_back(isa);
    if (result.isas.empty())
      throw_usage("this CPU has no vector instructions that a table knows",
                  "`loongforge debug --isa` shows what was found");
  } else {
    Isa isa{};
    kernels::parse_isa(named.c_str(), &isa);
    if (const std::string why = isa_verify::why_not_run(isa); !list && !why.empty())
      throw_usage("--isa-verify " + named + ": " + why,
                  "`loongforge debug --isa` shows what was found, and --list the rows of any set");
    result.isas = {isa};
  }
  result.patterns = options.list("only");
  result.seed = static_cast<uint64_t>(options.integer("seed"));
  result.vectors = static_cast<int>(options.integer("vectors"));
  return result;
}

}  // namespace loongforge::cmd
