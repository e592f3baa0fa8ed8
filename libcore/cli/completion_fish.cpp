#include "cli/completion.h"
#include "cli/options_parse.h"

namespace loongforge::cli {
namespace {

using completion::quoted;

std::string line(const std::string& condition, const std::string& rest) {
  return "  complete -c $program -n " + quoted(condition) + " " + rest + "\n";
}

std::string lines_of(const std::string& command, const Option& option) {
  std::string rest;
  switch (option.type) {
    case OptionType::kFlag:
      rest = "-f";
      break;
    case OptionType::kChoice:
      rest = "-x -a " + quoted(completion::joined(completion::choices(option), " "));
      break;
    case OptionType::kPath:
      rest = "-r -F";
      break;
    case OptionType::kFlagOrPath:
      rest = "-F";
      break;
    case OptionType::kFlagOrChoice:
      rest = "-f -a " + quoted(completion::joined(completion::choices(option), " "));
      break;
    default:
      rest = "-x";  // a value that only the user knows
  }
  rest += " -d " + quoted(option.help, "\\");
  std::string text;
  for (const std::string& name : option_names(option)) {
    if (name.size() == 1) {
      text += line("__loongforge_is " + command, "-s " + name + " " + rest);
      continue;
    }
    text += line("__loongforge_is " + command, "-l " + name + " " + rest);
    std::string hyphens = name;
    for (char& c : hyphens) c = c == '_' ? '-' : c;
    if (hyphens != name)  // only for who writes hyphens: every option would be listed twice
      text += line("__loongforge_is " + command + " hyphens", "-l " + hyphens + " " + rest);
  }
  return text;
}

}  // namespace

std::string completion::fish(const Words& words) {
  std::string text =
      "# fish completion for loongforge, made by `loongforge completion fish`\n"
      "# The command of the line under way; empty: none yet.\n"
      "function __loongforge_command\n"
      "  set -l words (commandline -opc)\n"
      "  set -l program (string replace -r '.*/' '' -- $words[1])\n"
      "  switch $program\n"
      "    case loongforge loongforge.cli\n"
      "      echo $words[2]\n"
      "    case '*'\n"
      "      string replace -r '^loongforge[-.]' '' -- $program\n"
      "  end\n"
      "end\n"
      "# __loongforge_is COMMAND [hyphens]: with hyphens, only where the word has one in its name\n"
      "function __loongforge_is\n"
      "  test \"$(__loongforge_command)\" = \"$argv[1]\"; or return 1\n"
      "  test (count $argv) -eq 1; and return 0\n"
      "  string match -q -- '--?*-*' (commandline -ct) (commandline -opc)[-1]\n"
      "end\n"
      "for program in " +
      joined(words.programs(), " ") + "\n";
  for (const Command* command : words.commands)
    for (const Option& option : full_table(*command)) text += lines_of(command->name, option);
  text += "end\nfor program in loongforge loongforge.cli\n";
  for (const Command* command : words.commands)
    text += line("test -z (__loongforge_command)",
                 "-f -a " + quoted(command->name) + " -d " + quoted(command->summary, "\\"));
  for (const char* word : words.builtins)
    text += line("test -z (__loongforge_command)", "-f -a " + quoted(word));
  text += line("__loongforge_is help", "-f -a " + quoted(joined(words.command_names(), " ")));
  text += line("__loongforge_is version", "-f -l json");
  text += line("__loongforge_is completion", "-f -a " + quoted(joined(completion_shells(), " ")));
  return text + "end\n";
}

}  // namespace loongforge::cli
