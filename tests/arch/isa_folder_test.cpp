// Intrinsics, vector assembler and the headers of an instruction set stand in that ISA's folder of
// kernels/ and nowhere else, so that adding an ISA is adding a folder.
#include <doctest/doctest.h>

#include <cctype>
#include <optional>

#include "arch/sources.h"

namespace loongforge::test {
namespace {

// What betrays an instruction set, and the folders it may stand in.
struct Mark {
  const char* text;
  bool starts_word;  // false: may stand inside a word
  std::vector<std::string> folders;
};

#define LF_X86 "libcore/kernels/avx2/", "libcore/kernels/avx512/"
#define LF_LOONG "libcore/kernels/lsx/", "libcore/kernels/lasx/"
const std::vector<Mark> kMarks = {
    {"mmintrin.h", false, {LF_X86}},
    {"x86intrin.h", false, {LF_X86}},
    {"sxintrin.h", false, {LF_LOONG}},
    {"arm_neon.h", false, {}},
    {"riscv_vector.h", false, {}},
    {"_mm_", true, {LF_X86}},
    {"_mm256_", true, {LF_X86}},
    {"_mm512_", true, {"libcore/kernels/avx512/"}},
    {"__m64", true, {LF_X86}},
    {"__m128", true, {LF_X86, LF_LOONG}},
    {"__m256", true, {LF_X86, "libcore/kernels/lasx/"}},
    {"__m512", true, {"libcore/kernels/avx512/"}},
    {"__mmask", true, {"libcore/kernels/avx512/"}},
    {"__lsx_", true, {LF_LOONG}},
    {"__lasx_", true, {"libcore/kernels/lasx/"}},
    {"__builtin_lsx_", true, {LF_LOONG}},
    {"__builtin_lasx_", true, {"libcore/kernels/lasx/"}},
    // Registers and instructions of assembler.
    {"%xmm", false, {LF_X86}},
    {"%ymm", false, {LF_X86}},
    {"%zmm", false, {"libcore/kernels/avx512/"}},
    {"$xr", false, {"libcore/kernels/lasx/"}},
    {"$vr", false, {LF_LOONG}},
    {"\"vfmadd", false, {LF_X86, LF_LOONG}},
    {"\"vdpbf16ps", false, {"libcore/kernels/avx512/"}},
    {"\"xvfmadd", false, {"libcore/kernels/lasx/"}},
};

// The checksum instruction of SSE 4.2 works on general registers: no vector.
const char* const kExempt[] = {"libcore/base/checksum.cpp"};

bool part_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The line without what follows "//".
std::string code_of(const std::string& line) { return line.substr(0, line.find("//")); }

// The first mark in a file that may not stand there.
std::optional<std::string> stray_mark(const std::string& file,
                                      const std::vector<std::string>& lines) {
  for (const std::string& whole : lines) {
    const std::string line = code_of(whole);
    for (const Mark& mark : kMarks) {
      for (size_t at = line.find(mark.text); at != std::string::npos;
           at = line.find(mark.text, at + 1)) {
        if (mark.starts_word && at > 0 && part_of_word(line[at - 1])) continue;
        const bool allowed =
            std::any_of(mark.folders.begin(), mark.folders.end(),
                        [&](const std::string& folder) { return file.starts_with(folder); });
        if (!allowed) return mark.text + std::string(" in: ") + whole;
      }
    }
  }
  return std::nullopt;
}

TEST_CASE("an intrinsic outside its ISA's folder is found") {
  const char* const strays[] = {"#include <immintrin.h>",
                                "  const __m256 x = y;",
                                "  x = _mm512_setzero_ps();",
                                "  _mm_prefetch(p, 0);",
                                "#include <lasxintrin.h>",
                                "  __m256i r = __lasx_xvld(p, 0);",
                                "  __asm__(\"vfmadd231ps %2, %1, %0\");",
                                "  __asm__(\"xvfmadd.s $xr0, $xr1, $xr2, $xr0\");"};
  for (const char* line : strays) {
    CHECK_MESSAGE(stray_mark("libcore/kernels/generic/gemm.h", {line}).has_value(), line);
    CHECK_MESSAGE(stray_mark("libcore/kernels/scalar/vec.h", {line}).has_value(), line);
    CHECK_MESSAGE(stray_mark("cmd/train/main.cpp", {line}).has_value(), line);
  }
  // Not even in another ISA's.
  CHECK(stray_mark("libcore/kernels/avx2/vec.h", {"  x = _mm512_setzero_ps();"}).has_value());
  CHECK(stray_mark("libcore/kernels/avx2/vec.h", {"  x = __lasx_xvld(p, 0);"}).has_value());
  CHECK(stray_mark("libcore/kernels/lsx/vec.h", {"  x = __lasx_xvld(p, 0);"}).has_value());
  CHECK_FALSE(stray_mark("libcore/kernels/avx2/vec.h", {"  x = _mm256_setzero_ps();"}).has_value());
  CHECK_FALSE(stray_mark("libcore/kernels/lasx/vec.h", {"  x = __lasx_xvld(p, 0);"}).has_value());
  CHECK_FALSE(stray_mark("libcore/kernels/gemm.h", {"// as vdpbf16ps does"}).has_value());
}

TEST_CASE("no intrinsic stands outside its ISA's folder") {
  size_t looked_at = 0;
  for (const char* folder : {"libcore", "cmd"}) {
    for (const std::string& file : files_under(folder, {".cpp", ".h"})) {
      if (std::find(std::begin(kExempt), std::end(kExempt), file) != std::end(kExempt)) continue;
      const auto stray = stray_mark(file, lines_of(source_root() / file));
      CHECK_MESSAGE(!stray.has_value(), file << ": " << stray.value_or(""));
      ++looked_at;
    }
  }
  CHECK(looked_at > 100);
}

}  // namespace
}  // namespace loongforge::test
