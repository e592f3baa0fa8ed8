// Completion scripts for bash, zsh and fish, made from the command list and the option tables. Pure
// functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.h"
#include "cli/options.h"

namespace loongforge::cli {

// "bash", "zsh", "fish".
LF_API const std::vector<std::string>& completion_shells();

// builtins: what stands after "loongforge" besides the commands. Error(kUsage) that lists the known
// shells.
LF_API std::string completion_script(std::string_view shell,
                                     std::span<const Command* const> commands,
                                     std::span<const char* const> builtins);

// What the scripts of the shells share; each shell's own stands in completion_<shell>.cpp.
namespace completion {

struct Words {
  std::span<const Command* const> commands;
  std::span<const char* const> builtins;

  std::vector<std::string> command_names() const;
  std::vector<std::string> first_words() const;  // commands, then builtins
  // Every name that the dispatcher and the commands can be called by: loongforge, loongforge-train,
  // loongforge.train, ...
  std::vector<std::string> programs() const;
};

std::string joined(const std::vector<std::string>& words, const char* separator);
// text in single quotes, for zsh and fish alike; `also` are further characters to put a backslash
// before.
std::string quoted(std::string_view text, std::string_view also = {});
std::vector<std::string> choices(const Option& option);  // of a kChoice row

std::string bash(const Words& words);
std::string zsh(const Words& words);
std::string fish(const Words& words);

}  // namespace completion
}  // namespace loongforge::cli
