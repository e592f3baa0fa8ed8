// The source files of the tree, for the tests that look at them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/places.h"

namespace loongforge::test {

namespace fs = std::filesystem;

inline fs::path source_root() { return source_dir(); }

inline std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Files under root/<folder> whose extension is one of those, as paths relative to the root, sorted.
inline std::vector<std::string> files_under(const char* folder,
                                            std::vector<std::string> extensions) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(source_root() / folder)) {
    const std::string extension = entry.path().extension().string();
    if (entry.is_regular_file() &&
        std::find(extensions.begin(), extensions.end(), extension) != extensions.end())
      found.push_back(fs::relative(entry.path(), source_root()).string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace loongforge::test
