// The option tables, -h, the manual pages and commands.def say the same.
#include "cli/help.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "arch/sources.h"
#include "cli/manual.h"
#include "cli/options_parse.h"
#include "cmd/commands.h"
#include "support/program.h"

namespace loongforge::test {
namespace {

using cli::Option;

std::string page_of(const std::string& command) {
  return slurp(source_root() / "man" / ("loongforge-" + command + ".1"));
}

// Item of the OPTIONS section: the names of its .It line, and everything up to the next item.
struct Item {
  std::set<std::string> names;
  std::string text;
};

std::vector<Item> option_items(const std::string& page) {
  std::vector<Item> items;
  std::istringstream lines(page);
  bool in_options = false, in_item = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".Sh ")) in_options = line == ".Sh OPTIONS";
    if (!in_options) continue;
    if (line.starts_with(".It ")) {
      in_item = true;
      items.emplace_back();
      std::istringstream words(line);
      for (std::string word, last; words >> word; last = word)
        if (last == "Fl") items.back().names.insert(word);
    } else if (line.starts_with(".El") || line.starts_with(".Ss")) {
      in_item = false;
    } else if (in_item) {
      // Macros fall away, so that a default reads "default X" however it is set.
      if (line.starts_with(".Cm ") || line.starts_with(".Ql ")) line = line.substr(4);
      items.back().text += line + " ";
    }
  }
  return items;
}

std::set<std::string> names_of(const Option& option) {
  std::set<std::string> names;
  for (const std::string& name : cli::option_names(option))
    names.insert(name.size() == 1 ? name : "-" + name);
  return names;
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += " -" + name;
  return text;
}

TEST_CASE(
    "every option of a table stands in the OPTIONS of its manual page with all its names, and no "
    "other") {
  for (const cmd::Entry& entry : cmd::entries()) {
    if (entry.command == nullptr) continue;
    std::vector<Item> items = option_items(page_of(entry.name));
    for (const Option& option : cli::full_table(*entry.command)) {
      const std::set<std::string> names = names_of(option);
      const auto found = std::find_if(items.begin(), items.end(),
                                      [&](const Item& item) { return item.names == names; });
      CHECK_MESSAGE(found != items.end(), entry.name << ": no item for" << joined(names));
      if (found == items.end()) continue;
      const std::string preset = option.preset != nullptr ? option.preset : "";
      const bool off = option.type == cli::OptionType::kFlag && preset == "false";
      if (!preset.empty() && !off)
        CHECK_MESSAGE(
            found->text.find("default " + preset + " ") != std::string::npos,
            entry.name << ": the item of" << joined(names) << " lacks: default " << preset);
      items.erase(found);
    }
    for (const Item& item : items)
      CHECK_MESSAGE(false, entry.name << ": no option is called" << joined(item.names));
  }
}

TEST_CASE("a manual page is named for its command and carries its summary") {
  for (const cmd::Entry& entry : cmd::entries()) {
    if (entry.command == nullptr) continue;
    const std::string page = page_of(entry.name);
    CHECK_MESSAGE(page.find(std::string(".Nm loongforge-") + entry.name + "\n.Nd " + entry.summary +
                            "\n") != std::string::npos,
                  entry.name);
    CHECK(std::string(entry.summary) == entry.command->summary);
    CHECK(std::string(entry.name) == entry.command->name);
  }
}

TEST_CASE("loongforge.1 lists every command of commands.def") {
  const std::string page = slurp(source_root() / "man" / "loongforge.1");
  for (const cmd::Entry& entry : cmd::entries())
    CHECK_MESSAGE(page.find(std::string("\n.It Cm ") + entry.name + "\n") != std::string::npos,
                  entry.name);
}

TEST_CASE("every manual page can be shown without man, and installs for --help") {
  size_t pages = 0;
  for (const auto& file : fs::directory_iterator(source_root() / "man")) {
    const std::string name = file.path().filename().string();
    if (!std::isdigit(static_cast<unsigned char>(name.back()))) continue;
    CHECK_NOTHROW(cli::plain_text(slurp(file.path()), name));
    CHECK(
        fs::exists(binary_dir() / "share" / "man" / ("man" + std::string(1, name.back())) / name));
    ++pages;
  }
  CHECK(pages >= 3);
}

TEST_CASE("option tables: names are unique, presets and domains fit, help is one line of ASCII") {
  for (const cmd::Entry& entry : cmd::entries()) {
    if (entry.command == nullptr) continue;
    const std::vector<Option> table = cli::full_table(*entry.command);
    CHECK_NOTHROW(cli::Options(std::span<const Option>(table)));
    std::set<std::string> seen;
    for (const Option& option : table) {
      for (const std::string& name : cli::option_names(option))
        CHECK_MESSAGE(seen.insert(cli::option_key(name)).second,
                      entry.name << ": " << name << " stands twice");
      const std::string help = option.help;
      CHECK_FALSE_MESSAGE(help.empty(), option.names);
      CHECK_FALSE_MESSAGE(help.ends_with('.'), option.names);
      CHECK(help.find('\n') == std::string::npos);
      if (option.type == cli::OptionType::kInt && option.domain != nullptr)
        CHECK_NOTHROW(
            cli::check_value(option, option.preset != nullptr ? option.preset : "7", option.names));
    }
  }
}

TEST_CASE("every command answers -h, --help and --version, through the dispatcher and its link") {
  const Outcome version = run({{program("loongforge"), "version"}});
  for (const cmd::Entry& entry : cmd::entries()) {
    if (entry.command == nullptr) continue;
    const std::string name = entry.name;
    for (const std::vector<std::string>& start :
         {std::vector<std::string>{program("loongforge"), name},
          {program("loongforge-" + name)},
          {program("loongforge." + name)}}) {
      const auto with = [&](const char* word) {
        Launch launch{start};
        launch.words.emplace_back(word);
        return run(launch);
      };
      CAPTURE(start.front());
      const Outcome brief = with("-h");
      CHECK(brief.code == 0);
      CHECK(brief.err.empty());
      CHECK(brief.out == cli::short_help(*entry.command, cli::full_table(*entry.command)));
      const Outcome full = with("--help");
      CHECK(full.code == 0);
      CHECK(full.out == cli::plain_text(page_of(name), name));
      const Outcome number = with("--version");
      CHECK(number.code == 0);
      CHECK(number.out == version.out);
    }
  }
}

TEST_CASE("every command folder stands in commands.def") {
  std::set<std::string> listed;
  for (const cmd::Entry& entry : cmd::entries())
    if (entry.command != nullptr) listed.insert(entry.folder);
  for (const auto& folder : fs::directory_iterator(source_root() / "cmd"))
    if (folder.is_directory())
      CHECK_MESSAGE(listed.erase(folder.path().filename().string()) == 1, folder.path().string());
  CHECK(listed.empty());
}

}  // namespace
}  // namespace loongforge::test
