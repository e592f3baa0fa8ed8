#include "base/log.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

std::vector<std::pair<loongforge::LogLevel, std::string>> g_lines;

}  // namespace

TEST_CASE("log: messages reach the sink, and nobody without one") {
  loongforge::set_log_sink(nullptr);
  loongforge::log_info("dropped");
  loongforge::set_log_sink([](loongforge::LogLevel level, std::string_view message) {
    g_lines.emplace_back(level, std::string(message));
  });
  loongforge::log_info("one");
  loongforge::log_warning("two");
  loongforge::set_log_sink(nullptr);
  loongforge::log_warning("dropped");
  REQUIRE(g_lines.size() == 2);
  CHECK(g_lines[0] == std::pair(loongforge::LogLevel::kInfo, std::string("one")));
  CHECK(g_lines[1] == std::pair(loongforge::LogLevel::kWarning, std::string("two")));
}
