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
  CHECK(text.find("  -o, --output_dir FOLDER       where results go\n") != std::string::npos);
  CHECK(text.find("  --rate, --r_alias X           how fast [default 0.5]\n") != std::string::npos);
  CHECK(text.find("be quick\n") != std::string::npos);
  CHECK(text.find("--mode a|b") != std::string::npos);
  CHECK(text.find("Files:") < text.find("Numbers:"));
  CHECK(text.find("Numbers:") < text.find("Common:"));
  for (const Option& option : common_options())
    CHECK(text.find("--" + option_names(option).front()) != std::string::npos);
}

TEST_CASE("-h is no wider than it may be, its synopsis, groups and long names included") {
  static constexpr Option kLong[] = {{"a_name_that_is_long|another_name_that_is_long",
                                      OptionType::kChoice, "one", "one|two|three_and_more",
                                      "A group", "helps"}};
  static constexpr Command kWide{
      "demo", "does nothing",
      "--output_dir O [--mode a|b] [--rate X] [--quick] [options]\n       loongforge demo --other "
      "--output_dir O [--mode a|b] [--rate X] [options]",
      kLong};
  for (const Command* command : {&kCommand, &kWide}) {
    for (const int width : {60, 80, 100, 0}) {
      const std::string text = short_help(*command, full_table(*command), width);
      for (size_t at = 0; at < text.size();) {
        const size_t end = text.find('\n', at);
        CAPTURE(text.substr(at, end - at));
        CHECK(end - at <= static_cast<size_t>(width > 0 ? width : 60));
        at = end + 1;
      }
    }
  }
  CHECK(short_help(kWide, full_table(kWide)).find("\n       loongforge demo --other ") !=
        std::string::npos);
}

}  // namespace
}  // namespace loongforge::cli
