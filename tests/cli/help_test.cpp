#include "cli/help.h"

#include <doctest/doctest.h>

#include "cli/options_parse.h"

namespace loongforge::cli {
namespace {

constexpr Option kRows[] = {
    {"output_dir|o", OptionType::kPath, nullptr, "FOLDER", "Files", "where results go"},
    {"rate|r_alias", OptionType::kDouble, "0.5", "(0,1]", "Numbers", "how fast"},
    {"quick", OptionType::kFlag, "false", nullptr, "Numbers", "be quick"},
    {"mode", OptionType::kChoice, "a", "a|b", "Numbers",
     "a help text that is long enough to be wrapped into a second line of the right-hand column"},
};
constexpr Command kCommand{"demo", "does nothing", "--output_dir O [options]", kRows};

TEST_CASE("-h: groups in the table's order, every name, defaults but for flags that are off") {
  const std::string text = short_help(kCommand, full_table(kCommand));
  CHECK(text.starts_with(
      "usage: loongforge demo --output_dir O [options]\ndoes nothing\n\nFiles:\n"));
  CHECK(text.find("  -o, --output_dir FOLDER         where results go\n") != std::string::npos);
  CHECK(text.find("  --rate, --r_alias X             how fast [default 0.5]\n") !=
        std::string::npos);
  CHECK(text.find("be quick\n") != std::string::npos);
  CHECK(text.find("--mode a|b") != std::string::npos);
  CHECK(text.find("Files:") < text.find("Numbers:"));
  CHECK(text.find("Numbers:") < text.find("Common:"));
  for (const Option& option : common_options())
    CHECK(text.find("--" + option_names(option).front()) != std::string::npos);
}

TEST_CASE("-h is no wider than 100 columns") {
  const std::string text = short_help(kCommand, full_table(kCommand));
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    CHECK(end - at <= 100);
    at = end + 1;
  }
}

}  // namespace
}  // namespace loongforge::cli
