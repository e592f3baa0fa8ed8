// A folder of libcore includes only what libcore/FLOORS lists for it; third-party headers stand in
// the adapters only.
#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <set>

#include "arch/sources.h"

namespace loongforge::test {
namespace {

using Floors = std::map<std::string, std::set<std::string>>;

Floors read_floors() {
  Floors floors;
  for (const std::string& line : lines_of(source_root() / "libcore" / "FLOORS")) {
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(':');
    REQUIRE(colon != std::string::npos);
    std::istringstream words(line.substr(colon + 1));
    std::set<std::string>& lower = floors[line.substr(0, colon)];
    for (std::string word; words >> word;) lower.insert(word);
  }
  return floors;
}

struct Include {
  std::string text;
  bool quoted;
};

std::vector<Include> includes_of(const std::string& file) {
  std::vector<Include> found;
  for (const std::string& line : lines_of(source_root() / file)) {
    size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#') continue;
    at = line.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos || line.compare(at, 7, "include") != 0) continue;
    const size_t open = line.find_first_of("<\"", at);
    if (open == std::string::npos) continue;  // a macro: seen where it is defined
    const size_t close = line.find_first_of(">\"", open + 1);
    found.push_back({line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return found;
}

std::string top_folder(const std::string& path) { return path.substr(0, path.find('/')); }

// Whether the include is a C, C++, POSIX or compiler header. Those have no folder, or one of the
// few below.
bool is_system_header(const std::string& text) {
  static const std::set<std::string> kThirdParty = {"utf8proc.h",
                                                    "pcre2.h",
                                                    "gcrypt.h",
                                                    "hwloc.h",
                                                    "numa.h",
                                                    "doctest.h",
                                                    "sentencepiece_processor.h"};
  if (kThirdParty.contains(text)) return false;
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return true;
  static const std::set<std::string> kFolders = {"sys", "linux", "asm", "net", "netinet", "arpa"};
  return kFolders.contains(text.substr(0, slash));
}

TEST_CASE("FLOORS names every folder of libcore, and nothing else") {
  const Floors floors = read_floors();
  for (const auto& [folder, lower] : floors) {
    CHECK_MESSAGE(fs::is_directory(source_root() / "libcore" / folder), folder);
    for (const std::string& name : lower)
      CHECK_MESSAGE(floors.contains(name), folder << " may include " << name);
  }
  for (const std::string& file : files_under("libcore", {".h", ".cpp"})) {
    const std::string folder = top_folder(file.substr(8));
    CHECK_MESSAGE(floors.contains(folder), file);
  }
}

TEST_CASE("FLOORS has no cycle") {
  const Floors floors = read_floors();
  std::map<std::string, int> state;  // 1: under way, 2: done
  const std::function<void(const std::string&)> visit = [&](const std::string& folder) {
    CHECK_MESSAGE(state[folder] != 1, "a cycle through " << folder);
    if (state[folder] != 0) return;
    state[folder] = 1;
    for (const std::string& lower : floors.at(folder)) visit(lower);
    state[folder] = 2;
  };
  for (const auto& [folder, lower] : floors) visit(folder);
}

TEST_CASE("a folder includes itself and what FLOORS lists for it") {
  const Floors floors = read_floors();
  size_t edges = 0;
  for (const std::string& file : files_under("libcore", {".h", ".cpp"})) {
    const std::string folder = top_folder(file.substr(8));
    for (const Include& include : includes_of(file)) {
      if (!include.quoted) continue;
      // The one door to the emulation that tests compile the AVX-512 kernels against.
      if (file == "libcore/kernels/avx512/intrinsics.h" && include.text == "support/emu/avx512.h")
        continue;
      const bool rooted = fs::exists(source_root() / "libcore" / include.text);
      CHECK_MESSAGE(rooted,
                    file << " includes \"" << include.text << "\", which is not rooted at libcore");
      if (!rooted) continue;
      const std::string target = top_folder(include.text);
      const bool allowed = target == folder || floors.at(folder).contains(target);
      CHECK_MESSAGE(allowed,
                    file << " includes \"" << include.text << "\", which is not below " << folder);
      ++edges;
    }
  }
  CHECK(edges > 100);  // the reading of includes works
}

TEST_CASE("third-party headers stand in support, topo and cli only") {
  static const std::set<std::string> kAdapters = {"support", "topo", "cli"};
  size_t found = 0;
  for (const std::string& file : files_under("libcore", {".h", ".cpp"})) {
    const std::string folder = top_folder(file.substr(8));
    for (const Include& include : includes_of(file)) {
      if (include.quoted || is_system_header(include.text)) continue;
      ++found;
      CHECK_MESSAGE(kAdapters.contains(folder), file << " includes <" << include.text << ">");
      CHECK_MESSAGE(file.ends_with(".cpp"),
                    file << " passes <" << include.text << "> on to whoever includes it");
    }
  }
  CHECK(found > 4);
}

TEST_CASE("cmd includes the library and itself, rooted") {
  for (const std::string& file : files_under("cmd", {".h", ".cpp"}))
    for (const Include& include : includes_of(file)) {
      if (!include.quoted) continue;
      const bool rooted =
          fs::exists(source_root() / "libcore" / include.text) ||
          (include.text.starts_with("cmd/") && fs::exists(source_root() / include.text));
      CHECK_MESSAGE(rooted, file << " includes \"" << include.text << "\"");
    }
}

}  // namespace
}  // namespace loongforge::test
