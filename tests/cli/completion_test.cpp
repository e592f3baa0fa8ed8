#include "cli/completion.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "support/places.h"

namespace loongforge::cli {
namespace {

constexpr Option kRows[] = {
    {"output_dir|o", OptionType::kPath, nullptr, "FOLDER", "G", "where"},
    {"lora_rank|lora_r", OptionType::kInt, "8", "[1,9]", "G", "rank"},
    {"tuning_type", OptionType::kChoice, "lora", "lora|full", "G", "type"},
};
constexpr Command kCommand{"demo", "does nothing", "[options]", kRows};

// A script file; gone with the test.
struct Script {
  std::filesystem::path path;
  Script() {
    char name[] = "/tmp/lf_completion_XXXXXX";
    const int fd = mkstemp(name);
    REQUIRE(fd >= 0);
    std::fclose(fdopen(fd, "w"));
    path = name;
    const Command* commands[] = {&kCommand};
    const char* words[] = {"help", "version", "completion"};
    std::ofstream(path) << bash_completion(commands, words);
  }
  ~Script() { std::filesystem::remove(path); }
};

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
  const Script script;
  CHECK(offers(script, "loongforge d") == "demo");
  CHECK(offers(script, "loongforge ver") == "version");
  CHECK(offers(script, "loongforge help d") == "demo");
  CHECK(offers(script, "loongforge version --") == "--json");
  CHECK(offers(script, "loongforge completion \"\"") == "bash");
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
  const Script script;
  CHECK(offers(script, "loongforge demo --lora-") == "--lora-rank --lora-r");
  CHECK(offers(script, "loongforge demo --tuning-type \"\"") == "lora full");
}

}  // namespace
}  // namespace loongforge::cli
