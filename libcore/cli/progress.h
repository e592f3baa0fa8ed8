// The progress line of a long operation, on stderr: bytes done, rate and time left. On a terminal
// one line that is redrawn; otherwise one line every interval, so that a log file stays readable.
// Thread-safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/api.h"

namespace loongforge::cli {

LF_API bool stderr_is_terminal();  // and TERM is not dumb

class LF_API ProgressLine {
 public:
  using Clock = std::chrono::steady_clock;
  struct Style {
    bool redraw;  // \r and erase
    std::chrono::milliseconds interval;
  };
  static Style style_for_stderr();

  ProgressLine(std::string label, Style style, Clock::time_point start = Clock::now());

  // The text to write to stderr now; empty when it is too early for another line. done > total
  // counts as total.
  std::string update(uint64_t done, uint64_t total, std::string_view item,
                     Clock::time_point now = Clock::now());
  // What ends the line: on a terminal erases it, otherwise nothing.
  std::string finish() const;

 private:
  std::string label_;
  Style style_;
  Clock::time_point start_, last_;
  bool shown_ = false;
};

}  // namespace loongforge::cli
