// Reads a command line, the environment and a --config file into Options: flag > environment >
// configuration > default. The adapter to CLI11: its header stands in options_parse.cpp only.
// Thread-safety: parse_options() reads the environment through the function it is given and shares
// no state.
#pragma once

#include <span>
#include <string>

#include "base/api.h"
#include "cli/options.h"

namespace loongforge::cli {

// Rows that every command has besides its own table.
LF_API std::span<const Option> common_options();
// The command's rows, then the common ones.
LF_API std::vector<Option> full_table(const Command& command);

enum class Request { kRun, kShortHelp, kManual, kVersion };

struct Parsed {
  Options options;
  Request request =
      Request::kRun;  // -h, --help and --version end the parsing: nothing else is checked
};

using EnvironmentLookup = const char* (*)(const char* name);

// table: full_table() of the command; must outlive the result. words: argv without argv[0].
// max_positionals: how many words that are no option are taken. foreign: hints for unknown names.
// Throws Error(kUsage), or kNoInput for an absent configuration file.
LF_API Parsed parse_options(std::span<const Option> table, std::span<const char* const> words,
                            EnvironmentLookup environment, int max_positionals = 0,
                            std::span<const ForeignName> foreign = {});

// A line for each LOONGFORGE_ variable that is nothing and close to what sets an option of the
// table: "LOONGFORGE_MAX_STEPZ sets nothing; did you mean LOONGFORGE_MAX_STEPS?". variables: as
// environ.
LF_API std::vector<std::string> misspelt_variables(std::span<const Option> table,
                                                   const char* const* variables);

}  // namespace loongforge::cli
