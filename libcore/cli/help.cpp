#include "cli/help.h"

#include <algorithm>
#include <vector>

#include "cli/text.h"

namespace loongforge::cli {
namespace {

constexpr int kColumn = 32, kNarrowest = 60;

// "  -o, --output_dir, --out PATH"
std::string left_side(const Option& option) {
  std::string shorts, longs;
  for (const std::string& name : option_names(option)) {
    if (name.size() == 1)
      shorts += "-" + name + ", ";
    else
      longs += (longs.empty() ? "--" : ", --") + name;
  }
  const std::string word = value_word(option);
  return "  " + shorts + longs + (word.empty() ? "" : " " + word);
}

std::string right_side(const Option& option) {
  std::string text = option.help;
  const bool off = option.type == OptionType::kFlag && option.preset != nullptr &&
                   std::string_view(option.preset) == "false";
  if (option.preset != nullptr && !off) text += std::string(" [default ") + option.preset + "]";
  return text;
}

}  // namespace

std::string short_help(const Command& command, std::span<const Option> table, int width) {
  width = std::max(width, kNarrowest);
  // A synopsis of several lines: each wrapped by itself.
  std::string text, line = "usage: loongforge " + std::string(command.name) + " ";
  for (const char c : std::string(command.synopsis) + "\n") {
    if (c != '\n') {
      line += c;
      continue;
    }
    const size_t indent = line.find_first_not_of(' ');
    text += std::string(indent, ' ') + wrap(line, width - static_cast<int>(indent), 11) + "\n";
    line.clear();
  }
  text += wrap(command.summary, width, 0) + "\n";
  std::vector<std::string> groups;
  for (const Option& option : table)
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end())
      groups.emplace_back(option.group);
  for (const std::string& group : groups) {
    text += "\n" + wrap(group + ":", width, 0) + "\n";
    for (const Option& option : table) {
      if (group != option.group) continue;
      std::string left = left_side(option);
      if (display_width(left) + 2 > kColumn)
        text += "  " + wrap(left, width - 2, 6) + "\n" + std::string(kColumn, ' ');
      else
        text += pad_right(left, kColumn);
      text += wrap(right_side(option), width - kColumn, kColumn) + "\n";
    }
  }
  text += "\n" + wrap("_ and - are alike in option names. --no-NAME turns a flag off.", width, 0) +
          "\n";
  return text + wrap("LOONGFORGE_<NAME> sets an option from the environment.", width, 0) + "\n";
}

}  // namespace loongforge::cli
