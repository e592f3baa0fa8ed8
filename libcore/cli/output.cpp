#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/error.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "support/json.h"

namespace loongforge::cli {
namespace {

const char* log_command = "";
bool log_colour = false;

const char* level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "";
}

void text_sink(LogLevel level, std::string_view message) {
  std::string line = "loongforge " + std::string(log_command) + ": ";
  if (level != LogLevel::kInfo) {
    const char* colour = level == LogLevel::kDebug     ? "\x1b[2m"
                         : level == LogLevel::kWarning ? "\x1b[33m"
                                                       : "\x1b[31m";
    line += log_colour ? std::string(colour) + level_name(level) + "\x1b[0m: "
                       : level_name(level) + std::string(": ");
  }
  print_error(line + one_line(message) + "\n");
}

void json_sink(LogLevel level, std::string_view message) {
  support::Json object = support::Json::object();
  object.set("event", "log");
  object.set("level", level_name(level));
  object.set("message", message);
  print_error(object.dump() + "\n");
}

[[noreturn]] void output_failed(int error) {
  throw_failed("standard output", std::strerror(error), "what was printed is not complete");
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) output_failed(errno);
}

void flush_output() {
  if (std::fflush(stdout) != 0) output_failed(errno);
  if (std::ferror(stdout) != 0) output_failed(EIO);
}

void print_error(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

void log_to_stderr(const char* command, bool json) {
  log_command = command;
  log_colour = stderr_takes_colour();
  set_log_sink(json ? json_sink : text_sink);
}

}  // namespace loongforge::cli
