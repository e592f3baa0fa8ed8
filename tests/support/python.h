// A Python that has what a test wants to ask: the reference implementations are an oracle where
// they are installed, the product and the other tests need none.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "support/program.h"

namespace loongforge::test {

// The first that imports `module`: of LOONGFORGE_TEST_PYTHON (paths with colons), then python3.
// Empty, and said loudly: none.
inline std::string python_with(const std::string& module) {
  std::string candidates = "/usr/bin/python3";
  if (const char* named = std::getenv("LOONGFORGE_TEST_PYTHON"); named != nullptr && *named != '\0')
    candidates = std::string(named) + ":" + candidates;
  std::istringstream list(candidates);
  for (std::string python; std::getline(list, python, ':');) {
    if (!std::filesystem::exists(python)) continue;
    if (run({{python, "-c", "import " + module}}).code == 0) return python;
  }
  MESSAGE("SKIPPED: no Python with " << module << " (name one in LOONGFORGE_TEST_PYTHON)");
  return {};
}

}  // namespace loongforge::test
