// The k loops of the micro-kernels keep every sum and factor in registers: a compiler that puts one
// on the stack halves their speed and nothing else would show it. Reads this binary's own machine
// code: x86-64, or LoongArch also where the user-mode emulator runs it beside a cross compiler.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arch/disassembly.h"
#include "kernels/isa.h"

namespace loongforge::test {
namespace {

struct Instruction {
  uint64_t address;
  std::string text;
};
struct Function {
  std::string name;
  std::vector<Instruction> code;
};

const char* const kKernels[] = {"::mul_tile<", "::strided_tile<", "::narrow_tile<", "::few_fp8<",
                                "::few_bf16<", "::few_rows<",     "::few_nf4<"};

bool is_micro_kernel(const std::string& name) {
  for (const char* kernel : kKernels)
    if (name.find(kernel) != std::string::npos) return true;
  return false;
}

// Labels within a function, as g++ leaves them for LoongArch.
bool is_label(const std::string& name) {
  return name.starts_with(".L") || name.find('^') != std::string::npos;
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
      if (is_label(name)) continue;
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

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// ---- What the test must know of a machine's instructions.
#if defined(__loongarch__)
// "bgtz        \t$a0, -284\t# b1e0 <...>": the number behind the "#"; 0: no jump.
uint64_t jump_target(const std::string& text) {
  const size_t number = text.find("# ");
  if (text[0] != 'b' || number == std::string::npos) return 0;
  return std::strtoull(text.c_str() + number + 2, nullptr, 16);
}
bool returns(const std::string& text) {
  return text.starts_with("ret") || text.starts_with("jr ") || text.starts_with("jr\t");
}
bool multiplies(const std::string& text) { return has(text, "vfmadd.s"); }
// A value there; an address costs nothing.
bool uses_stack(const std::string& text, bool /*frame*/) {
  return has(text, "$sp") && (text[0] == 'x' || text[0] == 'v' || text[0] == 'f');
}
bool makes_frame(const std::string&) { return false; }  // addi.d $fp, $sp, ...: not with -O2
#else
uint64_t jump_target(const std::string& text) {
  if (text[0] != 'j') return 0;
  const size_t number = text.find_first_of("0123456789abcdef", text.find(' '));
  return number == std::string::npos ? 0 : std::strtoull(text.c_str() + number, nullptr, 16);
}
bool returns(const std::string& text) { return text.starts_with("ret"); }
bool multiplies(const std::string& text) { return has(text, "vfmadd") || has(text, "vdpbf16ps"); }
bool uses_stack(const std::string& text, bool frame) {
  return has(text, "mm") && (has(text, "(%rsp") || (frame && has(text, "(%rbp")));
}
bool makes_frame(const std::string& text) { return has(text, "mov    %rsp,%rbp"); }
#endif

// Instruction numbers [first, last] of the innermost loops: a jump back, with no other inside.
std::vector<std::pair<size_t, size_t>> innermost_loops(const Function& f) {
  std::map<uint64_t, size_t> at;
  for (size_t i = 0; i < f.code.size(); ++i) at[f.code[i].address] = i;
  std::vector<std::pair<size_t, size_t>> loops;
  for (size_t i = 0; i < f.code.size(); ++i) {
    const auto target = at.find(jump_target(f.code[i].text));
    if (target == at.end() || target->second > i) continue;
    bool leaves = false;  // a jump back from code that was laid out behind the function's end
    for (size_t j = target->second; j < i; ++j) leaves = leaves || returns(f.code[j].text);
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

// What one innermost loop that multiplies does in a turn.
struct Loop {
  size_t instructions = 0;
  size_t products = 0;
  std::string spill;  // an instruction that touches the stack
};

std::vector<Loop> multiplying_loops(const Function& f) {
  bool frame = false;
  for (const Instruction& i : f.code) frame = frame || makes_frame(i.text);
  std::vector<Loop> found;
  for (const auto& [first, last] : innermost_loops(f)) {
    Loop loop;
    loop.instructions = last - first + 1;
    for (size_t i = first; i <= last; ++i) {
      loop.products += multiplies(f.code[i].text);
      if (uses_stack(f.code[i].text, frame)) loop.spill = f.code[i].text;
    }
    if (loop.products > 0) found.push_back(loop);
  }
  return found;
}

// The name that /proc has for us is the emulator's, where there is one.
std::string own_file() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  REQUIRE(n > 0);
  return std::string(path, static_cast<size_t>(n));
}

// The ISA in whose namespace a micro-kernel stands; scalar ones are the compiler's to make the best
// of.
std::string isa_of(const std::string& name) {
  for (const kernels::Isa isa : kernels::compiled_isas().subspan(1)) {
    const std::string folder = kernels::isa_name(isa);
    if (has(name, ("kernels::" + folder + "::").c_str())) return folder;
  }
  return {};
}

#if !(defined(__x86_64__) || defined(__loongarch__)) || !defined(__OPTIMIZE__) || \
    defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kJudged = false;
#else
constexpr bool kJudged = true;
#endif

TEST_CASE("micro-kernels keep their k loops off the stack") {
  if (!kJudged) {
    MESSAGE("SKIPPED: only optimised x86-64 and LoongArch builds without sanitizers are judged");
    return;
  }
  const std::string tool = objdump();
  if (tool.empty()) {
    MESSAGE("SKIPPED: objdump (binutils) is not installed");
    return;
  }
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen((tool + " -dC --no-show-raw-insn '" + own_file() + "'").c_str(), "r"), pclose);
  REQUIRE(pipe != nullptr);
  std::map<std::string, size_t> read;     // micro-kernels of each ISA
  std::map<std::string, double> leanest;  // instructions for a multiply-add, of its best gemm loop
  for (const Function& f : micro_kernels_of(pipe.get())) {
    const std::string isa = isa_of(f.name);
    if (isa.empty()) continue;
    kernels::Isa value{};
    if (kernels::parse_isa(isa.c_str(), &value) && kernels::isa_is_emulated(value)) continue;
    ++read[isa];
    const std::vector<Loop> loops = multiplying_loops(f);
    CHECK_MESSAGE(!loops.empty(),
                  f.name << " has no loop that multiplies: the test no longer reads it right");
    for (const Loop& loop : loops) {
      CHECK_MESSAGE(loop.spill.empty(), f.name << ": " << loop.spill);
      if (!has(f.name, "::mul_tile<")) continue;
      const double each =
          static_cast<double>(loop.instructions) / static_cast<double>(loop.products);
      if (leanest[isa] == 0 || each < leanest[isa]) leanest[isa] = each;
    }
  }
  for (const auto& [isa, count] : read)
    MESSAGE(isa << ": " << count << " micro-kernels read, " << leanest[isa]
                << " instructions for a vector multiply-add in gemm's loop");
  for (const kernels::Isa isa : kernels::compiled_isas().subspan(1)) {
    if (kernels::isa_is_emulated(isa)) continue;
    const std::string name = kernels::isa_name(isa);
    CHECK_MESSAGE(read[name] >= 12, name);  // 6 row counts, from zero and from C
#if defined(__loongarch__)
    CHECK_MESSAGE(leanest[name] <= 1.55, name);
#endif
  }
}

}  // namespace
}  // namespace loongforge::test
