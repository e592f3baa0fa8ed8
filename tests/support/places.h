// Where this checkout and its build stand.
#pragma once

#include <filesystem>

namespace loongforge::test {

std::filesystem::path source_dir();
std::filesystem::path binary_dir();

}  // namespace loongforge::test
