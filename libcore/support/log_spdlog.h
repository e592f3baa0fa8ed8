// The log sink that commands install: lines on stderr, as text for people or as JSON lines. The
// adapter to spdlog: its header stands in log_spdlog.cpp only.
//   text: "[12:34:56] message", and "[12:34:56] warning: message" for debug, warning and error
//   JSON: {"time":"2025-01-31T12:34:56.789Z","level":"info","message":"..."}
// Colour marks warning and error where wants_colour() says so.
// Thread-safety: install_log() at start only; everything else from any thread, lines never mix.
#pragma once

#include <string_view>

#include "base/api.h"
#include "base/log.h"

namespace loongforge::support {

enum class LogFormat { kText, kJson };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;  // what is below is dropped
  LogFormat format = LogFormat::kText;
  int fd = 2;  // where lines go; not closed
};

// Whether what goes to fd may have colour: a terminal that TERM names and that is not dumb, and no
// NO_COLOR.
LF_API bool wants_colour(int fd);

LF_API void install_log(const LogOptions& options);  // again: replaces the options

// Writes a line as it is, past level and format: the step records of --log-format json. Before
// install_log() it goes to stderr.
LF_API void write_log_line(std::string_view line);

// The level of a --log-level word: debug, info, warning, error. False: another word.
LF_API bool parse_log_level(std::string_view word, LogLevel* level) noexcept;

}  // namespace loongforge::support
