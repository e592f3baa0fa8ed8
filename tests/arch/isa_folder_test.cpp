// Intrinsics, vector assembler and the headers of an instruction set stand in the ISA folders of
// kernels/ (those with an isa.cmake) and nowhere else, so that adding an ISA is adding a folder.
#include <doctest/doctest.h>

#include <cctype>
#include <optional>

#include "arch/sources.h"

namespace loongforge::test {
namespace {

// What betrays an instruction set, and the ISA folders that may not even have it: another's.
struct Mark {
  const char* text;
  bool starts_word;  // false: may stand inside a word
  std::vector<std::string> not_in = {};
};

#define LF_X86 "avx2", "avx512"
#define LF_LOONG "lsx", "lasx"
const std::vector<Mark> kMarks = {
    {"mmintrin.h", false, {LF_LOONG}},
    {"x86intrin.h", false, {LF_LOONG}},
    {"sxintrin.h", false, {LF_X86}},
    {"arm_neon.h", false},
    {"riscv_vector.h", false},
    {"_mm_", true, {LF_LOONG}},
    {"_mm256_", true, {LF_LOONG}},
    {"_mm512_", true, {"avx2", LF_LOONG}},
    {"__m64", true, {LF_LOONG}},
    {"__m128", true},
    {"__m256", true, {"lsx"}},
    {"__m512", true, {"avx2", LF_LOONG}},
    {"__mmask", true, {"avx2", LF_LOONG}},
    {"__lsx_", true, {LF_X86}},
    {"__lasx_", true, {LF_X86, "lsx"}},
    {"__builtin_ia32_", true, {LF_LOONG}},
    {"__builtin_lsx_", true, {LF_X86}},
    {"__builtin_lasx_", true, {LF_X86, "lsx"}},
    {"__builtin_neon_", true},
    {"__builtin_shuffle", true},
    {"__tile_", true},
    {"vector_size", true},
    {"__vector_size__", true},
    {"ext_vector_type", true},
    // Flags of a function or of what follows.
    {"target(\"", true},
    {"__target__(\"", true},
    {"target_clones(\"", true},
    {"GCC target", false},
    {"GCC push_options", false},
    // Registers of assembler.
    {"%xmm", false, {LF_LOONG}},
    {"%ymm", false, {LF_LOONG}},
    {"%zmm", false, {"avx2", LF_LOONG}},
    {"$xr", false, {LF_X86, "lsx"}},
    {"$vr", false, {LF_X86}},
};

// What is no vector code: the checksum instructions, a pause, and those that ask the processor what
// it is, on general registers.
struct Exception {
  const char* file;
  std::vector<const char*> texts;
};
const std::vector<Exception> kExceptions = {
    {"libcore/base/checksum.cpp",
     {"nmmintrin.h", "target(\"sse4.2\")", "_mm_crc32_u8(", "_mm_crc32_u64(", "\"crcc.w.d.w ",
      "\"crcc.w.b.w "}},
    {"libcore/base/pool.cpp", {"__builtin_ia32_pause("}},
    {"libcore/kernels/cpu.cpp", {"\"cpucfg ", "\"xgetbv\""}},
    {"libcore/isa_verify/chip.cpp", {"\"cpucfg "}},
};

bool part_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The line without a comment at its end and without blanks before "(". "//" within a string begins
// no comment.
std::string code_of(std::string line) {
  for (size_t at; (at = line.find(" (")) != std::string::npos;) line.erase(at, 1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && line.compare(i, 2, "//") == 0) {
      return line.substr(0, i);
    }
  }
  return line;
}

// "avx2" for what stands in libcore/kernels/avx2/, if that is an ISA's folder; else empty.
std::string isa_folder_of(const std::string& file) {
  const std::string above = "libcore/kernels/";
  if (!file.starts_with(above)) return {};
  const std::string folder = file.substr(above.size(), file.find('/', above.size()) - above.size());
  return fs::exists(source_root() / above / folder / "isa.cmake") ? folder : std::string();
}

// An assembler statement whose text is not empty: "" only holds the compiler back.
bool is_assembler(const std::string& line) {
  for (const char* word : {"asm", "__asm__", "__asm"}) {
    for (size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
      const size_t end = at + std::string(word).size();
      if ((at > 0 && part_of_word(line[at - 1])) || (end < line.size() && part_of_word(line[end])))
        continue;
      const size_t quote = line.find('"', end);
      if (quote == std::string::npos || line.compare(quote, 2, "\"\"") != 0) return true;
      const size_t next = line.find_first_not_of(' ', quote + 2);
      if (next == std::string::npos || (line[next] != ':' && line[next] != ')')) return true;
    }
  }
  return false;
}

// _cvtsh_ss(, _kortestz_mask16_u8(, _tile_zero(: what begins with one underscore and a small letter
// is the compiler's, and called here it is an intrinsic. _exit is POSIX's.
bool calls_intrinsic(const std::string& line) {
  for (size_t at = line.find('_'); at != std::string::npos; at = line.find('_', at + 1)) {
    // A part of a word, also of one that a macro joins; a text.
    if (at > 0 && (part_of_word(line[at - 1]) || line[at - 1] == '#' || line[at - 1] == '"'))
      continue;
    size_t end = at + 1;
    if (end == line.size() || std::islower(static_cast<unsigned char>(line[end])) == 0) continue;
    while (end < line.size() && part_of_word(line[end])) ++end;
    if (end < line.size() && line[end] == '(' && line.compare(at, end - at, "_exit") != 0)
      return true;
  }
  return false;
}

std::string without_exceptions(const std::string& file, std::string line) {
  for (const Exception& exception : kExceptions) {
    if (file != exception.file) continue;
    for (const std::string text : exception.texts) {
      const size_t at = line.find(text);
      if (at == std::string::npos) continue;
      if (text[0] == '"') {  // the whole literal
        line.replace(at, line.find('"', at + 1) + 1 - at, "\"\"");
      } else {
        line.erase(at, text.size());
      }
    }
  }
  return line;
}

// The first mark in a file that may not stand there.
std::optional<std::string> stray_mark(const std::string& file,
                                      const std::vector<std::string>& lines) {
  const std::string isa = isa_folder_of(file);
  for (const std::string& whole : lines) {
    const std::string line = without_exceptions(file, code_of(whole));
    for (const Mark& mark : kMarks) {
      if (!isa.empty() &&
          std::find(mark.not_in.begin(), mark.not_in.end(), isa) == mark.not_in.end())
        continue;
      for (size_t at = line.find(mark.text); at != std::string::npos;
           at = line.find(mark.text, at + 1)) {
        if (mark.starts_word && at > 0 && part_of_word(line[at - 1])) continue;
        return mark.text + std::string(" in: ") + whole;
      }
    }
    if (isa.empty() && is_assembler(line)) return "assembler in: " + whole;
    if (isa.empty() && calls_intrinsic(line)) return "an intrinsic in: " + whole;
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
                                "  x = __builtin_ia32_addps256(x, y);",
                                "  __attribute__((target(\"avx2\"))) void f();",
                                "#pragma GCC target(\"avx512f\")",
                                "  typedef float Four __attribute__((vector_size(16)));",
                                "  __attribute__((__target__(\"avx2\"))) void f();",
                                "  __attribute__((target (\"avx2\"))) void f();",
                                "  typedef float Four __attribute__((__vector_size__(16)));",
                                "  asm volatile(\"\" \"vaddps %1,%2,%0\" : \"=x\"(a));",
                                "  __tile_zero(0);",
                                "  x = _cvtsh_ss (y);",
                                "  x = __builtin_shufflevector(y, z, 0, 1);",
                                "  x = _cvtsh_ss(y);",
                                "  if (_kortestz_mask16_u8(a, b)) return;",
                                "  _tile_zero(0);",
                                "  f(\"http://\", _mm_setzero_ps());",
                                "  __asm__(\"vaddps %1, %2, %0\" : \"=x\"(a));",
                                "  asm volatile(\"xvld %0, %1\");",
                                "  __asm__(",
                                "  __asm__(\"vfmadd231ps %2, %1, %0\");",
                                "  __asm__(\"xvfmadd.s $xr0, $xr1, $xr2, $xr0\");"};
  for (const char* line : strays) {
    for (const char* file :
         {"libcore/kernels/generic/gemm.h", "libcore/kernels/scalar/vec.h", "cmd/train/main.cpp",
          "libcore/base/checksum.cpp", "libcore/kernels/cpu.cpp"})
      CHECK_MESSAGE(stray_mark(file, {line}).has_value(), file << ": " << line);
  }
  // Not even in another ISA's.
  CHECK(stray_mark("libcore/kernels/avx2/vec.h", {"  x = _mm512_setzero_ps();"}).has_value());
  CHECK(stray_mark("libcore/kernels/avx2/vec.h", {"  x = __lasx_xvld(p, 0);"}).has_value());
  CHECK(stray_mark("libcore/kernels/lsx/vec.h", {"  x = __lasx_xvld(p, 0);"}).has_value());
  CHECK_FALSE(stray_mark("libcore/kernels/avx2/vec.h", {"  x = _mm256_setzero_ps();"}).has_value());
  CHECK_FALSE(stray_mark("libcore/kernels/lasx/vec.h", {"  x = __lasx_xvld(p, 0);"}).has_value());
  CHECK_FALSE(stray_mark("libcore/kernels/lasx/vec.h", {"  __asm__(\"xvld\");"}).has_value());
  // No such thing.
  for (const char* line : {"// as vdpbf16ps does", "  __asm__(\"\" : \"+r\"(c));", "  _exit(1);",
                           "  index_of(x);", "  use(basm(\"x\"));"})
    CHECK_FALSE_MESSAGE(stray_mark("libcore/kernels/gemm.h", {line}).has_value(), line);
  CHECK_FALSE(stray_mark("libcore/kernels/cpu.cpp", {"  __asm__ volatile(\"xgetbv\" : )"}));
}

TEST_CASE("no intrinsic stands outside its ISA's folder") {
  size_t looked_at = 0;
  for (const char* folder : {"libcore", "cmd"}) {
    for (const auto& entry : fs::recursive_directory_iterator(source_root() / folder)) {
      const std::string extension = entry.path().extension().string();
      if (!entry.is_regular_file() || extension == ".md" || extension == ".txt") continue;
      const std::string file = fs::relative(entry.path(), source_root()).string();
      // Assembler sources have no other mark; the tables of isa_verify are about instructions.
      CHECK_MESSAGE((extension != ".s" && extension != ".S"), file);
      if (file.starts_with("libcore/isa_verify/tables/")) continue;
      const auto stray = stray_mark(file, lines_of(entry.path()));
      CHECK_MESSAGE(!stray.has_value(), file << ": " << stray.value_or(""));
      ++looked_at;
    }
  }
  CHECK(looked_at > 100);
}

}  // namespace
}  // namespace loongforge::test
