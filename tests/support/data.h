// Where tests find data: tests/data in the repository, and the large references that it does not
// carry.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/places.h"

namespace loongforge::test {

inline std::filesystem::path data_dir() { return source_dir() / "tests" / "data"; }

// Names of the folders of tests/data/models that are laid out as golden models: what runs through
// every family runs over these.
inline std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(data_dir() / "models"))
    if (std::filesystem::exists(entry.path() / "golden.safetensors"))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Empty when neither LOONGFORGE_TEST_DATA nor ../shared beside the source tree exists.
inline std::filesystem::path shared_dir() {
  if (const char* env = std::getenv("LOONGFORGE_TEST_DATA"); env != nullptr && *env != '\0')
    return env;
  std::filesystem::path beside = source_dir().parent_path() / "shared";
  return std::filesystem::exists(beside) ? beside : std::filesystem::path();
}

}  // namespace loongforge::test
