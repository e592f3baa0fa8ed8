// Each libcore/<folder>/**/x.cpp has tests/<folder>/**/x_test.cpp, or a line in untested.txt that
// says where it is tested.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "arch/sources.h"

namespace loongforge::test {
namespace {

std::map<std::string, std::string> read_allowed() {
  std::map<std::string, std::string> allowed;
  for (const std::string& line : lines_of(source_root() / "tests" / "arch" / "untested.txt")) {
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(": ");
    REQUIRE_MESSAGE(colon != std::string::npos, line);
    allowed[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return allowed;
}

// Stems with a test, by folder of libcore.
std::set<std::string> tested() {
  std::set<std::string> found;
  for (const std::string& file : files_under("tests", {".cpp"})) {
    if (!file.ends_with("_test.cpp")) continue;
    const std::string inner = file.substr(6);  // without "tests/"
    const std::string stem = fs::path(file).stem().string();
    found.insert(inner.substr(0, inner.find('/')) + "/" + stem.substr(0, stem.size() - 5));
  }
  return found;
}

TEST_CASE("tests mirror the sources") {
  const std::set<std::string> stems = tested();
  std::map<std::string, std::string> allowed = read_allowed();
  for (const std::string& file : files_under("libcore", {".cpp"})) {
    const std::string inner = file.substr(8);
    const std::string key = inner.substr(0, inner.find('/')) + "/" + fs::path(file).stem().string();
    const bool listed = allowed.erase(inner) > 0;
    const bool has_test = stems.contains(key);
    CHECK_MESSAGE((has_test || listed),
                  file << " has no test, and no line in tests/arch/untested.txt");
    CHECK_FALSE_MESSAGE((has_test && listed),
                        file << " has a test; take its line out of tests/arch/untested.txt");
  }
  for (const auto& [file, reason] : allowed)
    CHECK_MESSAGE(false, "untested.txt names libcore/" << file << ", which is not there");
}

}  // namespace
}  // namespace loongforge::test
