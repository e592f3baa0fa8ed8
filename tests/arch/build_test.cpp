// What the build must not hold: CUDA or HIP, and ISA objects whose weak symbols the linker could
// pick for the whole program.
#include <doctest/doctest.h>

#include <cctype>
#include <cstdio>

#include "arch/sources.h"
#include "kernels/isa.h"
#include "support/temp_dir.h"

namespace loongforge::test {
namespace {

std::vector<std::string> build_files() {
  std::vector<std::string> files = {"CMakeLists.txt", "CMakePresets.json"};
  for (const char* folder : {"libcore", "cmd", "tests"})
    for (std::string& file : files_under(folder, {".txt", ".cmake"}))
      files.push_back(std::move(file));
  return files;
}

bool has_word(std::string text, const std::string& word) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool starts = at == 0 || std::isalpha(static_cast<unsigned char>(text[at - 1])) == 0;
    const size_t end = at + word.size();
    const bool ends =
        end >= text.size() || std::isalpha(static_cast<unsigned char>(text[end])) == 0;
    if (starts && ends) return true;
  }
  return false;
}

std::string output_of(const std::string& command, bool succeeds = true) {
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  CHECK_MESSAGE((pclose(pipe) == 0) == succeeds, command << "\n" << text);
  return text;
}

TEST_CASE("no CUDA or HIP stands in the build") {
  CHECK(has_word("enable_language(CUDA)", "cuda"));
  CHECK_FALSE(has_word("a ship leaves", "hip"));
  for (const std::string& file : build_files())
    for (const char* word : {"cuda", "hip", "cudart", "hiprtc", "nvcc", "hipcc", "cublas", "rocm"})
      CHECK_FALSE_MESSAGE(has_word(slurp(source_root() / file), word), file << " names " << word);
}

TEST_CASE("no source is CUDA or HIP, or includes their headers") {
  for (const char* folder : {"libcore", "cmd"}) {
    CHECK(files_under(folder, {".cu", ".cuh", ".hip"}).empty());
    for (const std::string& file : files_under(folder, {".cpp", ".h"}))
      for (const std::string& line : lines_of(source_root() / file)) {
        if (!line.starts_with("#include")) continue;
        CHECK_FALSE_MESSAGE(
            (has_word(line, "cuda") || has_word(line, "hip") || has_word(line, "cublas")),
            file << ": " << line);
      }
  }
}

TEST_CASE("the library links no CUDA or HIP") {
  const std::string text =
      output_of("ldd '" + (binary_dir() / "bin" / "loongforge").string() + "' 2>&1");
  CHECK(text.find("libc.so") != std::string::npos);
  for (const char* word : {"libcuda", "libcudart", "libamdhip", "libcublas", "libhip"})
    CHECK_FALSE_MESSAGE(text.find(word) != std::string::npos, word);
}

#if defined(__x86_64__)
// The compiler of this machine knows -mlasx as little as a GCC 13 for LoongArch does.
TEST_CASE("a LoongArch compiler without -mlasx ends CMake naming the version that has it") {
  const TempDir dir;
  const std::string printed =
      output_of("cmake -S '" + source_root().string() + "' -B '" + dir.path().string() +
                    "' -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=loongarch64 2>&1",
                false);
  std::string text;  // without the breaks that CMake puts into a message
  for (const char c : printed) {
    const bool space = c == '\n' || c == ' ';
    if (!space || text.empty() || text.back() != ' ') text += space ? ' ' : c;
  }
  CHECK_MESSAGE(text.find("GCC 14 or newer") != std::string::npos, text);
  CHECK_MESSAGE(text.find("does not know -mlasx") != std::string::npos, text);
  CHECK_MESSAGE(text.find("unrecognized") == std::string::npos, text);
}
#endif

// A weak function of a file compiled for AVX-512 (a template of std, an inline function of a shared
// header) may be the copy that the linker keeps for every caller; on a CPU without AVX-512 the
// program then dies. Weak functions of the ISA's own namespace are no other file's.
TEST_CASE("ISA objects define no weak functions outside of their own namespace") {
  size_t objects = 0;
  for (const auto& entry : fs::recursive_directory_iterator(binary_dir())) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".o" || path.find("lf_objects.dir") == std::string::npos)
      continue;
    for (const kernels::Isa which : kernels::compiled_isas().subspan(1)) {
      const std::string isa = kernels::isa_name(which);
      if (path.find("/kernels/" + isa + "/") == std::string::npos) continue;
      ++objects;
      std::istringstream lines(output_of("nm -C '" + path + "'"));
      for (std::string line; std::getline(lines, line);) {
        if (line.find(" W ") == std::string::npos) continue;
        const bool own = line.find("loongforge::kernels::" + isa + "::") != std::string::npos;
        CHECK_MESSAGE(own, path << ": " << line);
      }
    }
  }
  CHECK(objects > kernels::compiled_isas().size() - 1);
}

}  // namespace
}  // namespace loongforge::test
