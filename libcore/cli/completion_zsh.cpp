#include "cli/completion.h"
#include "cli/options_parse.h"

namespace loongforge::cli {
namespace {

// In a spec, brackets and colons of the text itself take a backslash.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// One spec of _arguments per spelling: "--lora_rank=[rank of the adapter]:N: ".
std::string specs_of(const Option& option) {
  std::vector<std::string> spellings;
  for (const std::string& name : option_names(option))
    spellings.push_back((name.size() == 1 ? "-" : "--") + name);
  const std::string apart = "(" + completion::joined(spellings, " ") + ")";  // once is enough
  std::string lines;
  for (const std::string& spelling : spellings) {
    std::string spec = spelling;
    const bool is_long = spelling.starts_with("--");
    const std::string text = escaped(option.help), value = escaped(value_word(option));
    switch (option.type) {
      case OptionType::kFlag:
        spec += "[" + text + "]";
        break;
      case OptionType::kChoice:
        spec += (is_long ? "=[" : "[") + text + "]:word:(" +
                completion::joined(completion::choices(option), " ") + ")";
        break;
      case OptionType::kPath:
        spec += (is_long ? "=[" : "[") + text + "]:" + value + ":_files";
        break;
      case OptionType::kFlagOrPath:
        spec += (is_long ? "=-[" : "-[") + text + "]::path:_files";
        break;
      case OptionType::kFlagOrChoice:
        spec += (is_long ? "=-[" : "-[") + text + "]::word:(" +
                completion::joined(completion::choices(option), " ") + ")";
        break;
      default:
        spec += (is_long ? "=[" : "[") + text + "]:" + value + ": ";
    }
    lines += "        " + completion::quoted(apart + spec) + " \\\n";
  }
  return lines;
}

}  // namespace

std::string completion::zsh(const Words& words) {
  std::string cases, described;
  for (const Command* command : words.commands) {
    cases += std::string("    ") + command->name + ")\n      _arguments -S -M 'm:{-_}={_-}' \\\n";
    for (const Option& option : full_table(*command)) cases += specs_of(option);
    cases += "        '*:file:_files'\n      ;;\n";
    described += "        " + quoted(std::string(command->name) + ":" + command->summary) + "\n";
  }
  for (const char* word : words.builtins) described += "        " + quoted(word) + "\n";
  return "#compdef " + joined(words.programs(), " ") +
         "\n"
         "# zsh completion for loongforge, made by `loongforge completion zsh`\n"
         "_loongforge() {\n"
         "  local command=${service:t}\n"
         "  case $command in\n"
         "    loongforge|loongforge.cli)\n"
         "      if ((CURRENT == 2)); then\n"
         "        local -a first=(\n" +
         described +
         "        )\n"
         "        _describe command first\n"
         "        return\n"
         "      fi\n"
         "      command=$words[2]\n"
         "      shift words\n"
         "      ((CURRENT--))\n"
         "      ;;\n"
         "    loongforge-*) command=${command#loongforge-} ;;\n"
         "    loongforge.*) command=${command#loongforge.} ;;\n"
         "  esac\n"
         "  case $command in\n"
         "    help) _values command " +
         joined(words.command_names(), " ") +
         " ;;\n"
         "    version) _arguments '--json[as one JSON object]' ;;\n"
         "    completion) _values shell " +
         joined(completion_shells(), " ") + " ;;\n" + cases +
         "  esac\n"
         "}\n"
         // Loaded through fpath the file is the function's body; sourced, it registers itself.
         "if [[ $funcstack[1] == _loongforge ]]; then _loongforge \"$@\"; else compdef "
         "_loongforge " +
         joined(words.programs(), " ") + "; fi\n";
}

}  // namespace loongforge::cli
