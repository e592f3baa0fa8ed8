#include "cli/completion.h"
#include "cli/options_parse.h"

namespace loongforge::cli {
namespace {

using completion::joined;

// "--learning_rate|--lr|-o": a case pattern of every spelling; '-' for '_' is brought back before
// the case.
std::string pattern(const Option& option) {
  std::vector<std::string> words;
  for (const std::string& name : option_names(option))
    words.push_back(name.size() == 1 ? "-" + name : "--" + option_key(name));
  return joined(words, "|");
}

std::string case_of(const Command& command) {
  std::vector<std::string> flags;
  std::string values;
  for (const Option& option : full_table(command)) {
    for (const std::string& name : option_names(option))
      flags.push_back((name.size() == 1 ? "-" : "--") + name);
    std::string action;
    if (option.type == OptionType::kChoice || option.type == OptionType::kFlagOrChoice) {
      std::string words(option.domain);
      for (char& c : words) c = c == '|' ? ' ' : c;
      action = "COMPREPLY=($(compgen -W '" + words + "' -- \"$cur\"))";
    } else if (option.type == OptionType::kPath || option.type == OptionType::kFlagOrPath) {
      action = "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\"))";
    } else if (option.type != OptionType::kFlag) {
      action = ":";  // a value that only the user knows
    }
    if (!action.empty()) values += "        " + pattern(option) + ") " + action + "; return ;;\n";
  }
  return std::string("    ") + command.name + ")\n      case \"$prev\" in\n" + values +
         "      esac\n      flags='" + joined(flags, " ") + "'\n      ;;\n";
}

}  // namespace

std::string completion::bash(const Words& words) {
  std::string cases;
  for (const Command* command : words.commands) cases += case_of(*command);
  const std::string names = joined(words.command_names(), " ");
  return "# bash completion for loongforge, made by `loongforge completion bash`\n"
         "_loongforge() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${1##*/} "
         "flags=''\n"
         "  COMPREPLY=()\n"
         "  if [[ $cur == '=' ]]; then\n"
         "    cur=''\n"
         "  elif [[ $prev == '=' ]]; then\n"
         "    prev=${COMP_WORDS[COMP_CWORD-2]}\n"
         "  fi\n"
         "  if [[ $prev == --* ]]; then prev=${prev#--}; prev=--${prev//-/_}; fi\n"
         "  case \"$command\" in\n"
         "    loongforge|loongforge.cli)\n"
         "      if ((COMP_CWORD == 1)); then\n"
         "        COMPREPLY=($(compgen -W '" +
         joined(words.first_words(), " ") +
         " --help --version' -- \"$cur\"))\n"
         "        return\n"
         "      fi\n"
         "      command=${COMP_WORDS[1]}\n"
         "      ;;\n"
         "    loongforge-*) command=${command#loongforge-} ;;\n"
         "    loongforge.*) command=${command#loongforge.} ;;\n"
         "  esac\n"
         "  case \"$command\" in\n"
         "    help) COMPREPLY=($(compgen -W '" +
         names +
         "' -- \"$cur\")); return ;;\n"
         "    version) COMPREPLY=($(compgen -W '--json' -- \"$cur\")); return ;;\n"
         "    completion) COMPREPLY=($(compgen -W '" +
         joined(completion_shells(), " ") + "' -- \"$cur\")); return ;;\n" + cases +
         "  esac\n"
         "  # The user's choice between - and _ is kept.\n"
         "  if [[ ${cur#--} == *-* ]]; then flags=${flags//_/-}; fi\n"
         "  COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
         "}\n"
         "complete -F _loongforge " +
         joined(words.programs(), " ") + "\n";
}

}  // namespace loongforge::cli
