#include "cli/completion.h"

#include "base/error.h"

namespace loongforge::cli {

const std::vector<std::string>& completion_shells() {
  static const std::vector<std::string> shells{"bash", "zsh", "fish"};
  return shells;
}

std::string completion_script(std::string_view shell, std::span<const Command* const> commands,
                              std::span<const char* const> builtins) {
  const completion::Words words{commands, builtins};
  if (shell == "bash") return completion::bash(words);
  if (shell == "zsh") return completion::zsh(words);
  if (shell == "fish") return completion::fish(words);
  throw_usage("completion does not know the shell '" + std::string(shell) + "'",
              "known: " + completion::joined(completion_shells(), ", "));
}

namespace completion {

std::vector<std::string> Words::command_names() const {
  std::vector<std::string> names;
  for (const Command* command : commands) names.emplace_back(command->name);
  return names;
}

std::vector<std::string> Words::first_words() const {
  std::vector<std::string> first = command_names();
  first.insert(first.end(), builtins.begin(), builtins.end());
  return first;
}

std::vector<std::string> Words::programs() const {
  std::vector<std::string> programs{"loongforge", "loongforge.cli"};
  for (const std::string& name : command_names()) {
    programs.push_back("loongforge-" + name);
    programs.push_back("loongforge." + name);
  }
  return programs;
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string quoted(std::string_view text, std::string_view also) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (also.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out + "'";
}

std::vector<std::string> choices(const Option& option) {
  std::vector<std::string> words(1);
  for (const char c : std::string_view(option.domain)) {
    if (c == '|')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

}  // namespace completion
}  // namespace loongforge::cli
