#include "cli/completion.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "support/expect_error.h"
#include "support/places.h"
#include "support/program.h"
#include "support/temp_dir.h"

namespace loongforge::cli {
namespace {

constexpr Option kRows[] = {
    {"output_dir|o", OptionType::kPath, nullptr, "FOLDER", "G", "where"},
    {"lora_rank|lora_r", OptionType::kInt, "8", "[1,9]", "G", "rank"},
    {"tuning_type", OptionType::kChoice, "lora", "lora|full", "G", "type"},
};
constexpr Command kCommand{"demo", "does nothing", "[options]", kRows};

std::string script_of(const char* shell) {
  const Command* commands[] = {&kCommand};
  const char* words[] = {"help", "version", "completion"};
  return completion_script(shell, commands, words);
}

// A script file; gone with the test.
struct Script {
  test::TempDir dir;
  std::filesystem::path path = dir / "script";
  explicit Script(const char* shell) { std::ofstream(path) << script_of(shell); }
};

// Null after a loud line where the shell is not installed.
const char* shell_path(const char* first, const char* second) {
  for (const char* path : {first, second})
    if (std::filesystem::exists(path)) return path;
  MESSAGE("SKIPPED: " << first << " is not installed");
  return nullptr;
}

// What bash offers for the words of an unfinished command line (the last one under way), space
// separated.
std::string offers(const Script& script, const std::string& words) {
  const std::string command =
      "bash --norc -c 'source " + script.path.string() + "; COMP_WORDS=(" + words +
      "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _loongforge \"${COMP_WORDS[0]}\"; "
      "echo \"${COMPREPLY[*]}\"' 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) text += buffer.data();
  CHECK(pclose(pipe) == 0);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

TEST_CASE("bash completes commands, options, choices and files") {
  const Script script("bash");
  CHECK(offers(script, "loongforge d") == "demo");
  CHECK(offers(script, "loongforge ver") == "version");
  CHECK(offers(script, "loongforge help d") == "demo");
  CHECK(offers(script, "loongforge version --") == "--json");
  CHECK(offers(script, "loongforge completion \"\"") == "bash zsh fish");
  CHECK(offers(script, "loongforge demo --lora") == "--lora_rank --lora_r");
  CHECK(offers(script, "/usr/bin/loongforge-demo --tun") == "--tuning_type");
  CHECK(offers(script, "loongforge.demo --thr") == "--threads");
  CHECK(offers(script, "loongforge demo --tuning_type \"\"") == "lora full");
  CHECK(offers(script, "loongforge demo --tuning_type f") == "full");
  CHECK(offers(script, "loongforge demo --tuning_type = f") == "full");  // bash splits at =
  const std::string tree = test::source_dir().string();
  CHECK(offers(script, "loongforge demo --output_dir " + tree + "/CMakeL") ==
        tree + "/CMakeLists.txt");
  CHECK(offers(script, "loongforge demo --lora_rank \"\"").empty());
}

TEST_CASE("bash completes hyphens where the user writes hyphens") {
  const Script script("bash");
  CHECK(offers(script, "loongforge demo --lora-") == "--lora-rank --lora-r");
  CHECK(offers(script, "loongforge demo --tuning-type \"\"") == "lora full");
}

// The words that fish offers, without their descriptions, space separated.
std::string fish_offers(const char* fish, const Script& script, const std::string& line) {
  const test::Outcome o = test::run({{fish, "--no-config", "-c",
                                      "source " + script.path.string() + "; complete -C '" + line +
                                          "' | string replace -r '\\t.*' ''; true"}});
  CHECK_MESSAGE(o.code == 0, o.err);
  CHECK(o.err.empty());
  std::string words = o.out;
  for (char& c : words) c = c == '\n' ? ' ' : c;
  if (words.ends_with(' ')) words.pop_back();
  return words;
}

TEST_CASE("fish completes commands, options, choices and files") {
  const char* fish = shell_path("/usr/bin/fish", "/bin/fish");
  if (fish == nullptr) return;
  const Script script("fish");
  const auto offers = [&](const std::string& line) { return fish_offers(fish, script, line); };
  CHECK(offers("loongforge d") == "demo");
  CHECK(offers("loongforge ver") == "version");
  CHECK(offers("loongforge help d") == "demo");
  CHECK(offers("loongforge completion z") == "zsh");
  CHECK(offers("loongforge version --j") == "--json");
  CHECK(offers("loongforge demo --lora") == "--lora_r --lora_rank");
  CHECK(offers("loongforge demo --lora-") == "--lora-r --lora-rank");
  CHECK(offers("/usr/bin/loongforge-demo --tun") == "--tuning_type");
  CHECK(offers("loongforge.demo --thr") == "--threads");
  CHECK(offers("loongforge demo --tuning_type f") == "full");
  CHECK(offers("loongforge demo --tuning-type f") == "full");
  CHECK(offers("loongforge demo --tuning_type=l") == "--tuning_type=lora");
  const std::string tree = test::source_dir().string();
  CHECK(offers("loongforge demo --output_dir " + tree + "/CMakeL") == tree + "/CMakeLists.txt");
  CHECK(offers("loongforge demo --lora_rank ").empty());
}

// What an interactive zsh inserts for the line and a Tab: the line as it then stands.
std::string zsh_completes(const char* zsh, const Script& script, const std::string& line) {
  const std::filesystem::path driver = script.dir / "driver";
  // The marks are put together by the shell, so that the echo of a command is not taken for them.
  std::ofstream(driver) << R"(zmodload zsh/zpty
zpty shell ')" << zsh << R"( -f -i'
zpty -w shell 'PS1=; autoload -Uz compinit; compinit -u -d )"
                        << (script.dir / "dump").string() << R"(; source )" << script.path.string()
                        << R"('
zpty -w shell 'show() { print -r -- "<""<$BUFFER>"">"; BUFFER=; zle accept-line }; zle -N show; bindkey "^X" show; echo re""ady'
zpty -r shell got '*ready*'
zpty -n -w shell $')" << line
                        << R"(\t\x18'
zpty -r shell got '*<<*>>*'
print -r -- ${${got##*<<}%%>>*}
zpty -d shell
)";
  const test::Outcome o = test::run({{"/usr/bin/timeout", "60", zsh, "-f", driver.string()}});
  CHECK_MESSAGE(o.code == 0, o.err);
  std::string out = o.out;
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  return out;
}

TEST_CASE("zsh completes commands, options, choices and files") {
  const char* zsh = shell_path("/usr/bin/zsh", "/bin/zsh");
  if (zsh == nullptr) return;
  const Script script("zsh");
  const auto completes = [&](const std::string& line) { return zsh_completes(zsh, script, line); };
  CHECK(completes("loongforge d") == "loongforge demo");
  CHECK(completes("loongforge help d") == "loongforge help demo");
  CHECK(completes("loongforge completion z") == "loongforge completion zsh");
  CHECK(completes("loongforge demo --tun") == "loongforge demo --tuning_type=");
  CHECK(completes("loongforge demo --tuning-t") == "loongforge demo --tuning_type=");
  CHECK(completes("loongforge demo --tuning_type f") == "loongforge demo --tuning_type full");
  CHECK(completes("loongforge-demo --tuning_type=f") == "loongforge-demo --tuning_type=full");
  CHECK(completes("loongforge.demo --thr") == "loongforge.demo --threads=");
  const std::string tree = test::source_dir().string();
  CHECK(completes("loongforge demo --output_dir " + tree + "/CMakeL") ==
        "loongforge demo --output_dir " + tree + "/CMakeLists.txt");
}

TEST_CASE("an unknown shell is refused with the known ones") {
  LF_CHECK_ERROR(script_of("tcsh"), ErrorCode::kUsage, "bash, zsh, fish");
}

}  // namespace
}  // namespace loongforge::cli
