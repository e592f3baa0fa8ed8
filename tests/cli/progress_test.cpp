#include "cli/progress.h"

#include <doctest/doctest.h>

namespace loongforge::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a log file gets whole lines, one every interval, with rate and time left") {
  const ProgressLine::Clock::time_point start{};
  ProgressLine line("convert", {false, seconds(10)}, start);
  CHECK(line.update(10, 400, "w", start + seconds(9)).empty());
  CHECK(line.update(100'000'000, 400'000'000, "model.w", start + seconds(10)) ==
        "convert  25%  100.0 MB of 400.0 MB  10.0 MB/s  ETA 30s  model.w\n");
  CHECK(line.update(101'000'000, 400'000'000, "model.w", start + seconds(11)).empty());
  CHECK_FALSE(line.update(200'000'000, 400'000'000, "", start + seconds(20)).empty());
  CHECK(line.finish().empty());
}

TEST_CASE("a terminal gets one line that is redrawn, and erased at the end") {
  const ProgressLine::Clock::time_point start{};
  ProgressLine line("export", {true, milliseconds(100)}, start);
  CHECK(line.finish().empty());  // nothing was shown
  const std::string text = line.update(500, 100, std::string(200, 'n'), start + seconds(1));
  CHECK(text.starts_with("\r\x1b[Kexport 100%"));
  CHECK(text.find('\n') == std::string::npos);
  CHECK(text.size() < 110);  // a long name is left out
  CHECK(line.finish() == "\r\x1b[K");
}

TEST_CASE("nothing to do and nothing done are no division by zero") {
  const ProgressLine::Clock::time_point start{};
  ProgressLine line("x", {false, seconds(0)}, start);
  CHECK(line.update(0, 0, "", start) == "x 100%  0 B of 0 B  0 B/s\n");
}

}  // namespace
}  // namespace loongforge::cli
