// The built-in tables against assemblers: every row's text gives the bytes that stand in the row.
// LoongArch's needs its cross assembler: in PATH, or in the environment that scripts/loongarch
// makes
// ($LOONGFORGE_LOONGARCH_ENV, else build/loongarch/env).
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "base/file.h"
#include "isa_verify/operation.h"
#include "support/places.h"
#include "support/temp_dir.h"

namespace loongforge::isa_verify {
namespace {

namespace fs = std::filesystem;
using kernels::Isa;

bool runs(const std::string& command) {
  return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
}

// How a tool of this machine's or the cross binutils is called; empty: it is not here.
std::string tool(const std::string& name, bool loongarch) {
  const std::string plain = (loongarch ? "loongarch64-linux-gnu-" : "") + name;
  if (runs(plain + " --version")) return plain;
  if (!loongarch) return {};
  const char* named = std::getenv("LOONGFORGE_LOONGARCH_ENV");
  const fs::path root =
      (named != nullptr ? fs::path(named) : test::source_dir() / "build/loongarch/env") / "tools";
  // Those of another Debian: by its own loader and libraries.
  const std::string command = (root / "lib64/ld-linux-x86-64.so.2").string() + " --library-path " +
                              (root / "usr/lib/x86_64-linux-gnu").string() + " " +
                              (root / "usr/bin" / plain).string();
  return runs(command + " --version") ? command : std::string();
}

struct Line {
  const Operation* operation;
  std::string text;
  std::vector<uint8_t> code;
};

std::vector<Line> lines_of(bool loongarch) {
  std::vector<Line> lines;
  for (const Operation& operation : built_in_operations()) {
    if (is_loongarch(operation.isa) != loongarch) continue;
    const std::vector<int64_t> first = immediate_values(operation.immediates[0]);
    const std::vector<int64_t> second = immediate_values(operation.immediates[1]);
    // The ends and one between: every bit of a field is then both 0 and 1 somewhere.
    for (const auto& [i, i2] : std::map<int64_t, int64_t>{{first.front(), second.back()},
                                                          {first[first.size() / 3], second.front()},
                                                          {first.back(), second.front()}})
      lines.push_back({&operation, assembly(operation, i, i2), encode(operation, i, i2)});
  }
  return lines;
}

// The row's encoding where an assembler has several for a text.
std::string prefixed(const Line& line) {
  if (is_loongarch(line.operation->isa)) return line.text;
  const bool mask_only = line.text[0] == 'k' || line.text[0] == 'p';
  if (mask_only) return line.text;
  return (line.operation->isa == Isa::kAvx2 ? "{vex} " : "{evex} ") + line.text;
}

void check_with_assembler(bool loongarch) {
  const std::string assembler = tool("as", loongarch), copier = tool("objcopy", loongarch);
  if (assembler.empty() || copier.empty()) {
    const std::string machine = loongarch ? "LoongArch" : "x86-64";
    MESSAGE("SKIPPED: no assembler for " << machine << " here; rows were NOT compared");
    return;
  }
  const std::vector<Line> lines = lines_of(loongarch);
  const test::TempDir dir;
  {
    std::ofstream source(dir / "t.s");
    if (!loongarch) source << ".intel_syntax noprefix\n";
    // Where each instruction starts, in a section of its own.
    for (size_t i = 0; i < lines.size(); ++i)
      source << "L" << i << ": " << prefixed(lines[i]) << "\n";
    source << "L" << lines.size() << ":\n.data\n";
    for (size_t i = 0; i <= lines.size(); ++i) source << ".long L" << i << " - L0\n";
  }
  const std::string base = (dir.path() / "t").string();
  const std::string relax =
      loongarch ? " -mno-relax " : " ";  // differences of labels stay constants
  REQUIRE(std::system((assembler + relax + base + ".s -o " + base + ".o").c_str()) == 0);
  for (const char* section : {"text", "data"})
    REQUIRE(std::system(
                (copier + " -O binary -j ." + section + " " + base + ".o " + base + "." + section)
                    .c_str()) == 0);
  const std::string code = read_text(base + ".text"), starts = read_text(base + ".data");
  const auto start = [&](size_t i) {
    uint32_t value = 0;
    for (size_t b = 0; b < 4; ++b)
      value |= static_cast<uint32_t>(static_cast<uint8_t>(starts[4 * i + b])) << (8 * b);
    return value;
  };
  REQUIRE(starts.size() >= 4 * (lines.size() + 1));
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string assembled = code.substr(start(i), start(i + 1) - start(i));
    const std::string stands(lines[i].code.begin(), lines[i].code.end());
    CHECK_MESSAGE(assembled == stands, lines[i].operation->place << ": " << lines[i].text);
  }
  MESSAGE(lines.size() << " encodings compared");
  CHECK(lines.size() > 2000);
}

TEST_CASE("x86 rows are what the assembler makes of their text") { check_with_assembler(false); }

TEST_CASE("LoongArch rows are what the assembler makes of their text") {
  check_with_assembler(true);
}

TEST_CASE("no operation stands twice, and LASX has whatever LSX has") {
  std::set<std::string> seen, lsx, lasx;
  for (const Operation& operation : built_in_operations()) {
    const std::string key = std::string(kernels::isa_name(operation.isa)) + " " + operation.form() +
                            " " + std::to_string(operation.immediates[0].low);
    CHECK_MESSAGE(seen.insert(key).second, operation.place << ": " << key << " stands twice");
    if (operation.isa == Isa::kLsx) lsx.insert(operation.mnemonic);
    if (operation.isa == Isa::kLasx) lasx.insert(operation.mnemonic);
  }
  // What LASX spells otherwise or has for words and doublewords only.
  for (const char* other :
       {"vreplvei.b", "vreplvei.h", "vreplvei.w", "vreplvei.d", "vinsgr2vr.b", "vinsgr2vr.h",
        "vpickve2gr.b", "vpickve2gr.h", "vpickve2gr.bu", "vpickve2gr.hu"})
    CHECK(lsx.erase(other) == 1);
  for (const std::string& name : lsx) CHECK_MESSAGE(lasx.contains("x" + name), name);
  CHECK(lsx.size() > 650);
  CHECK(lasx.size() > 700);
}

}  // namespace
}  // namespace loongforge::isa_verify
