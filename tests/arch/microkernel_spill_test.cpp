// The k loops of the micro-kernels keep every sum and factor in registers: a compiler that puts one
// on the stack halves their speed and nothing else would show it. Reads this binary's own machine
// code.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/isa.h"

namespace loongforge {
namespace {

struct Instruction {
  uint64_t address;
  std::string text;
};
struct Function {
  std::string name;
  std::vector<Instruction> code;
};

const char* const kKernels[] = {"::mul_tile<", "::strided_tile<", "::few_fp8<",
                                "::few_bf16<", "::few_rows<",     "::few_nf4<"};

bool is_micro_kernel(const std::string& name) {
  for (const char* kernel : kKernels)
    if (name.find(kernel) != std::string::npos) return true;
  return false;
}

// Lines are "0000000000001234 <name>:" and "    1234:\tinstruction".
std::vector<Function> micro_kernels_of(FILE* disassembly) {
  std::vector<Function> found;
  bool inside = false;
  char* line = nullptr;
  size_t size = 0;
  for (ssize_t n; (n = getline(&line, &size, disassembly)) > 0;) {
    std::string text(line, static_cast<size_t>(n - 1));
    const size_t open = text.find(" <");
    if (!text.empty() && text[0] != ' ' && open != std::string::npos && text.size() > 2 &&
        text.compare(text.size() - 2, 2, ">:") == 0) {
      const std::string name = text.substr(open + 2, text.size() - open - 4);
      inside = is_micro_kernel(name);
      if (inside) found.push_back({name, {}});
      continue;
    }
    const size_t colon = text.find(":\t");
    if (!inside || colon == std::string::npos) continue;
    found.back().code.push_back({std::strtoull(text.c_str(), nullptr, 16), text.substr(colon + 2)});
  }
  std::free(line);
  return found;
}

// Instruction numbers [first, last] of the innermost loops: a jump back, with no other inside.
std::vector<std::pair<size_t, size_t>> innermost_loops(const Function& f) {
  std::map<uint64_t, size_t> at;
  for (size_t i = 0; i < f.code.size(); ++i) at[f.code[i].address] = i;
  std::vector<std::pair<size_t, size_t>> loops;
  for (size_t i = 0; i < f.code.size(); ++i) {
    const std::string& text = f.code[i].text;
    if (text[0] != 'j') continue;
    const size_t space = text.find_first_of("0123456789abcdef", text.find(' '));
    if (space == std::string::npos) continue;
    const auto target = at.find(std::strtoull(text.c_str() + space, nullptr, 16));
    if (target == at.end() || target->second > i) continue;
    bool leaves = false;  // a jump back from code that was laid out behind the function's end
    for (size_t j = target->second; j < i; ++j)
      leaves = leaves || f.code[j].text.starts_with("ret");
    if (leaves) continue;
    loops.emplace_back(target->second, i);
  }
  std::vector<std::pair<size_t, size_t>> inner;
  for (const auto& a : loops) {
    bool innermost = true;
    for (const auto& b : loops)
      innermost = innermost && (a == b || b.first < a.first || b.second > a.second ||
                                (b.first == a.first && b.second > a.second));
    if (innermost) inner.push_back(a);
  }
  return inner;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_CASE("micro-kernels keep their k loops off the stack") {
#if !defined(__x86_64__) || !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || \
    defined(__SANITIZE_THREAD__)
  MESSAGE("SKIPPED: only optimised x86-64 builds without sanitizers are judged");
#else
  if (std::system("objdump --version > /dev/null 2>&1") != 0) {
    MESSAGE("SKIPPED: objdump (binutils) is not installed");
    return;
  }
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen(("objdump -dC --no-show-raw-insn /proc/" + std::to_string(getpid()) + "/exe").c_str(),
            "r"),
      pclose);
  REQUIRE(pipe != nullptr);
  const std::vector<Function> kernels = micro_kernels_of(pipe.get());
  size_t avx2 = 0, avx512 = 0;
  for (const Function& f : kernels) {
    const bool emulated =
        has(f.name, "avx512::") && kernels::isa_is_emulated(kernels::Isa::kAvx512);
    // The scalar ISA's are the compiler's to make the best of.
    if (emulated || has(f.name, "kernels::scalar::")) continue;
    bool frame = false;
    for (const Instruction& i : f.code) frame = frame || has(i.text, "mov    %rsp,%rbp");
    size_t multiplying = 0;
    for (const auto& [first, last] : innermost_loops(f)) {
      bool multiplies = false;
      std::string spill;
      for (size_t i = first; i <= last; ++i) {
        const std::string& text = f.code[i].text;
        multiplies = multiplies || has(text, "vfmadd") || has(text, "vdpbf16ps");
        const bool stack = has(text, "(%rsp") || (frame && has(text, "(%rbp"));
        if (stack && has(text, "mm")) spill = text;  // an address there costs nothing
      }
      if (!multiplies) continue;
      ++multiplying;
      CHECK_MESSAGE(spill.empty(), f.name << ": " << spill);
    }
    CHECK_MESSAGE(multiplying > 0,
                  f.name << " has no loop that multiplies: the test no longer reads it right");
    (has(f.name, "avx512::") ? avx512 : avx2) += 1;
  }
  MESSAGE(avx2 << " AVX2 and " << avx512 << " AVX-512 micro-kernels read");
#ifdef LF_HAVE_AVX2
  CHECK(avx2 >= 12);  // 6 row counts, from zero and from C
#endif
#ifdef LF_HAVE_AVX512
  if (!kernels::isa_is_emulated(kernels::Isa::kAvx512)) CHECK(avx512 >= 24);
#endif
#endif
}

}  // namespace
}  // namespace loongforge
