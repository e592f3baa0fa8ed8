#include "cli/run.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cli/help.h"
#include "cli/manual.h"
#include "cli/options_parse.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/version.h"
#include "kernels/isa.h"
#include "support/log_spdlog.h"
#include "topo/machine.h"

namespace loongforge::cli {
namespace {

constexpr int kWidestHelp = 100;  // longer lines are hard to read

const char* environment(const char* name) { return std::getenv(name); }

int report(const char* name, const std::string& line, ErrorCode code) {
  const std::string command = *name == '\0' ? "loongforge" : "loongforge " + std::string(name);
  print_error(command + ": " + one_line(line) + "\n");
  return static_cast<int>(code);
}

support::LogOptions log_options(const Options& options) {
  support::LogOptions result;
  support::parse_log_level(options.text("log_level"), &result.level);
  if (options.text("log_format") == "json") result.format = support::LogFormat::kJson;
  return result;
}

struct Invocation {
  const Command& command;
  int argc;
  char** argv;
  CommandBody body;
};

int run_invocation(void* context) {
  const auto& [command, argc, argv, body] = *static_cast<Invocation*>(context);
  const std::vector<Option> table = full_table(command);
  const std::vector<const char*> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const Parsed parsed = parse_options(table, words, environment, 0, command.foreign);
  switch (parsed.request) {
    case Request::kVersion:
      print(version_line() + "\n");
      return 0;
    case Request::kManual:
      if (show_manual(std::string("loongforge-") + command.name + ".1")) return 0;
      [[fallthrough]];
    case Request::kShortHelp:
      print(short_help(command, table, std::min(terminal_width(STDOUT_FILENO), kWidestHelp)));
      return 0;
    case Request::kRun:
      break;
  }
  support::install_log(log_options(parsed.options));
  for (const std::string& line : misspelt_variables(table, environ)) log_warning(line);
  apply_isa(environment("LOONGFORGE_ISA"));
  return body(parsed.options);
}

}  // namespace

int run_guarded(const char* name, int (*body)(void* context), void* context) {
  signal(SIGPIPE, SIG_IGN);  // a closed reader shows as a failed write: OutputClosed
  signal(SIGXFSZ, SIG_IGN);  // so does a limit on file sizes, as a full disk does
  support::install_log({});
  try {
    const int code = body(context);
    flush_output();
    return code;
  } catch (const OutputClosed& closed) {
    return static_cast<int>(closed.code());
  } catch (const Error& error) {
    return report(name, error.what(), error.code());
  } catch (const std::bad_alloc&) {
    return report(name,
                  "out of memory; free some, or ask for less (smaller batch, shorter cutoff_len)",
                  ErrorCode::kFailed);
  } catch (const std::exception& error) {
    return report(name, std::string("internal error: ") + error.what() + "; please report it",
                  ErrorCode::kFailed);
  }
}

int run_command(const Command& command, int argc, char** argv, CommandBody body) {
  Invocation invocation{command, argc, argv, body};
  return run_guarded(command.name, run_invocation, &invocation);
}

void apply_isa(const char* name) {
  if (name == nullptr || *name == '\0') return;
  std::string available;
  bool found = false;
  kernels::Isa wanted{};
  const bool known = kernels::parse_isa(name, &wanted);
  for (const kernels::Isa isa : kernels::available_isas()) {
    available += (available.empty() ? "" : ", ") + std::string(kernels::isa_name(isa));
    found = found || (known && isa == wanted);
  }
  if (!found)
    throw Error(ErrorCode::kUsage, "LOONGFORGE_ISA",
                "'" + std::string(name) +
                    (known ? "' is not available on this machine" : "' is not an instruction set"),
                "available: " + available);
  kernels::set_active_isa(wanted);
}

int thread_count(const Options& options) {
  if (options.has("threads")) return static_cast<int>(options.integer("threads"));
  return topo::read_machine().default_threads();
}

}  // namespace loongforge::cli
