// Each libcore/<folder>/**/x.cpp has tests/<folder>/**/x_test.cpp, or a line in untested.txt that
// says where it is tested.
#include <doctest/doctest.h>

#include <set>

#include "arch/sources.h"

namespace loongforge::test {
namespace {

// A line "folder/stem: tests/folder/other_test.cpp (what of it is tested there)"; a '*' at the end
// of the path stands for the rest of a name.
struct Allowed {
  std::string path, reason;
  bool used = false;

  bool covers(const std::string& file) const {
    return path.ends_with('*') ? file.starts_with(path.substr(0, path.size() - 1)) : file == path;
  }
};

std::vector<Allowed> read_allowed() {
  std::vector<Allowed> allowed;
  for (const std::string& line : lines_of(source_root() / "tests" / "arch" / "untested.txt")) {
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(": ");
    REQUIRE_MESSAGE(colon != std::string::npos, line);
    allowed.push_back({line.substr(0, colon), line.substr(colon + 2)});
    const std::string test =
        allowed.back().reason.substr(0, allowed.back().reason.find_first_of(" ,"));
    CHECK_MESSAGE((test.starts_with("tests/") && fs::is_regular_file(source_root() / test)),
                  "no such test: " << line);
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
    std::string floor = inner.substr(0, inner.find('/'));
    if (floor == "data_floor") floor = "data";  // tests/data holds data files
    found.insert(floor + "/" + stem.substr(0, stem.size() - 5));
  }
  return found;
}

TEST_CASE("tests mirror the sources") {
  const std::set<std::string> stems = tested();
  std::vector<Allowed> allowed = read_allowed();
  for (const std::string& file : files_under("libcore", {".cpp"})) {
    const std::string inner = file.substr(8);
    if (stems.contains(inner.substr(0, inner.find('/')) + "/" + fs::path(file).stem().string()))
      continue;
    const auto line = std::find_if(allowed.begin(), allowed.end(),
                                   [&](const Allowed& a) { return a.covers(inner); });
    CHECK_MESSAGE(line != allowed.end(),
                  file << " has no test, and no line in tests/arch/untested.txt");
    if (line != allowed.end()) line->used = true;
  }
  for (const Allowed& line : allowed)
    CHECK_MESSAGE(line.used, "tests/arch/untested.txt names "
                                 << line.path << ", which has a test or is not there");
}

}  // namespace
}  // namespace loongforge::test
