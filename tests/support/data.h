// Where tests find data: tests/data in the repository, and the large references that it does not carry.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/places.h"

namespace loongforge::test {

inline std::filesystem::path data_dir() { return source_dir() / "tests" / "data"; }

// Empty when neither LOONGFORGE_TEST_DATA nor ../shared beside the source tree exists.
inline std::filesystem::path shared_dir() {
  if (const char* env = std::getenv("LOONGFORGE_TEST_DATA"); env != nullptr && *env != '\0') return env;
  std::filesystem::path beside = source_dir().parent_path() / "shared";
  return std::filesystem::exists(beside) ? beside : std::filesystem::path();
}

}  // namespace loongforge::test
