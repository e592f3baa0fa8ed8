// The scripts refuse what they do not understand before they do anything.
#include <doctest/doctest.h>

#include <algorithm>

#include "support/places.h"
#include "support/program.h"

namespace loongforge::test {
namespace {

TEST_CASE(
    "a script ends at once, on one line, at an argument that it does not know; --help tells") {
  const std::vector<std::vector<std::string>> commands = {
      {"scripts/test.sh", "release", "--nonsense"},
      {"scripts/quickstart.sh", "--nonsense"},
      {"scripts/install_deps.sh", "--nonsense"},
      {"scripts/fuzz.sh", "--nonsense"},
      {"scripts/loongarch/test.sh", "build", "--nonsense"},
      {"scripts/loongarch/env.sh", "--nonsense"},
      {"scripts/loongarch/kernels.sh", "--nonsense"},
      {"scripts/loongarch/compare.sh", "--nonsense"},
      {"scripts/loongarch/system.sh", "--nonsense"},
  };
  for (std::vector<std::string> words : commands) {
    words[0] = (source_dir() / words[0]).string();
    const Outcome outcome = run({words});
    CAPTURE(words[0]);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find("--nonsense") != std::string::npos);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    const Outcome help = run({{words[0], "--help"}});
    CHECK(help.code == 0);
    CHECK(help.err.empty());
    CHECK(std::count(help.out.begin(), help.out.end(), '\n') > 2);
    CHECK(help.out.find("set -e") == std::string::npos);
  }
}

}  // namespace
}  // namespace loongforge::test
