// The dispatcher: `loongforge <cmd> ...` becomes the program loongforge-<cmd> beside it (or in
// ../libexec/loongforge). Its own words are help, version and completion.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "cli/completion.h"
#include "cli/manual.h"
#include "cli/output.h"
#include "cli/run.h"
#include "cli/suggest.h"
#include "cli/text.h"
#include "cli/version.h"
#include "cmd/commands.h"

namespace loongforge::cmd {
namespace {

std::string overview() {
  std::string text = "usage: loongforge <command> [options]\n";
  std::string group;
  for (const Entry& entry : entries()) {
    if (group != entry.group) text += "\n" + (group = entry.group) + ":\n";
    text += "  " + cli::pad_right(entry.name, 15) + entry.summary + "\n";
  }
  return text +
         "\n`loongforge <command> -h` lists its options, `loongforge help <command>` shows its "
         "manual.\n";
}

const Entry* find_entry(std::string_view name) {
  for (const Entry& entry : entries())
    if (entry.name == name) return &entry;
  return nullptr;
}

[[noreturn]] void unknown_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.emplace_back(entry.name);
  std::string hint = cli::did_you_mean(name, names);
  throw_usage("unknown command '" + name + "'",
              hint.empty() ? "`loongforge help` lists the commands" : std::move(hint));
}

// Replaces this process by loongforge-<name>; words are what follows the name.
[[noreturn]] void execute(const Entry& entry, std::vector<char*> words) {
  std::error_code failed;
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
  if (failed) throw_failed("/proc/self/exe", "cannot be read: " + failed.message());
  const std::string file = std::string("loongforge-") + entry.name;
  std::string shown = file;
  words.insert(words.begin(), shown.data());
  words.push_back(nullptr);
  int error = 0;
  for (const std::filesystem::path& place :
       {folder, folder.parent_path() / "libexec" / "loongforge"}) {
    execv((place / file).c_str(), words.data());
    if (errno != ENOENT) error = errno;
  }
  throw_failed((folder / file).string(), std::strerror(error != 0 ? error : ENOENT),
               "install the suite again, all of it");
}

int help(const std::vector<char*>& words) {
  if (words.empty()) {
    cli::print(overview());
    return 0;
  }
  const Entry* entry = find_entry(words[0]);
  if (entry == nullptr) unknown_command(words[0]);
  if (entry->command != nullptr) {
    static char manual[] = "--help";
    execute(*entry, {manual});
  }
  if (!cli::show_manual("loongforge.1")) cli::print(overview());
  return 0;
}

int version(const std::vector<char*>& words) {
  if (words.empty()) {
    cli::print(cli::version_line() + "\n");
    return 0;
  }
  if (words.size() != 1 || std::strcmp(words[0], "--json") != 0)
    throw_usage(std::string("version does not take '") + words[0] + "'",
                "loongforge version [--json]");
  cli::apply_isa(std::getenv("LOONGFORGE_ISA"));
  cli::print(cli::version_json().dump() + "\n");
  return 0;
}

int completion(const std::vector<char*>& words) {
  if (words.size() != 1)
    throw_usage("completion needs the name of a shell", "loongforge completion bash|zsh|fish");
  std::vector<const cli::Command*> commands;
  std::vector<const char*> builtins;
  for (const Entry& entry : entries()) {
    if (entry.command != nullptr)
      commands.push_back(entry.command);
    else
      builtins.push_back(entry.name);
  }
  cli::print(cli::completion_script(words[0], commands, builtins));
  return 0;
}

int dispatch(void* context) {
  std::vector<char*> words = *static_cast<std::vector<char*>*>(context);
  if (words.empty()) {
    cli::print_error(overview());
    return static_cast<int>(ErrorCode::kUsage);
  }
  const std::string name = words.front();
  words.erase(words.begin());
  if (name == "-h") return help({});
  if (name == "--help") return help({const_cast<char*>("help")});
  if (name == "--version" || name == "version") {
    const bool asks = !words.empty() &&
                      (std::strcmp(words[0], "-h") == 0 || std::strcmp(words[0], "--help") == 0);
    return asks ? help({const_cast<char*>("version")}) : version(words);
  }
  if (name == "help") return help(words);
  if (name == "completion") return completion(words);
  if (name.starts_with("-"))
    throw_usage("unknown option " + name,
                "the command comes first: loongforge <command> [options]");
  const Entry* entry = find_entry(name);
  if (entry == nullptr) unknown_command(name);
  execute(*entry, std::move(words));
}

}  // namespace
}  // namespace loongforge::cmd

int main(int argc, char** argv) {
  std::vector<char*> words(argv + std::min(argc, 1), argv + argc);
  return loongforge::cli::run_guarded("", loongforge::cmd::dispatch, &words);
}
