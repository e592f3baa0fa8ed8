#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "cli/output.h"
#include "cli/text.h"

namespace loongforge::cli {

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

ProgressLine::Style ProgressLine::style_for_stderr() {
  using std::chrono::milliseconds;
  return stderr_is_terminal() ? Style{true, milliseconds(100)} : Style{false, milliseconds(10000)};
}

ProgressLine::ProgressLine(std::string label, Style style, Clock::time_point start)
    : label_(std::move(label)), style_(style), start_(start), last_(start) {}

std::string ProgressLine::update(uint64_t done, uint64_t total, std::string_view item,
                                 Clock::time_point now) {
  if (now - last_ < style_.interval) return {};
  last_ = now;
  shown_ = true;
  done = std::min(done, total);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const uint64_t percent =
      total > 0
          ? static_cast<uint64_t>(100.0 * static_cast<double>(done) / static_cast<double>(total))
          : 100;
  std::string line = label_ + " " + pad_left(std::to_string(percent), 3) + "%  " +
                     human_bytes(done) + " of " + human_bytes(total) + "  " +
                     human_bytes(static_cast<uint64_t>(rate)) + "/s";
  if (rate > 0) line += "  ETA " + human_duration(static_cast<double>(total - done) / rate);
  // A line that wraps could not be redrawn.
  const auto longest = static_cast<size_t>(terminal_width(STDERR_FILENO) - 1);
  if (!item.empty() && (!style_.redraw || line.size() + 2 + item.size() <= longest))
    line += "  " + one_line(item);
  return style_.redraw ? "\r\x1b[K" + line : line + "\n";
}

std::string ProgressLine::finish() const {
  return style_.redraw && shown_ ? "\r\x1b[K" : std::string();
}

}  // namespace loongforge::cli
