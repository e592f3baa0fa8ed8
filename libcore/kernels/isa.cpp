#include "kernels/isa.h"

#include <atomic>
#include <cstring>
#include <iterator>

namespace loongforge::kernels {

#if LF_HAVE_AVX512
namespace avx512 {
extern const bool kEmulated;
}
#endif

namespace {

struct Entry {
  Isa isa;
  const char* name;
  const char* needs;
  bool compiled;
};
#define LF_ISA_ENTRY(arg, NAME, value, folder, needs) \
  {Isa::value, #folder, needs, LF_HAVE_##NAME != 0},
constexpr Entry kEntries[] = {{Isa::kScalar, "scalar", "", true}, LF_VECTOR_ISAS(LF_ISA_ENTRY, )};
#undef LF_ISA_ENTRY
constexpr size_t kIsas = std::size(kEntries);

const Entry& entry_of(Isa isa) noexcept { return kEntries[static_cast<size_t>(isa)]; }

// The emulation of AVX-512 is compiled for AVX2.
bool runs(const CpuFeatures& cpu, Isa isa) noexcept {
  return isa_runs_on(cpu, isa_is_emulated(isa) ? Isa::kAvx2 : isa);
}

// A part of kEntries, in its order.
struct Isas {
  Isa list[kIsas] = {};
  size_t count = 0;

  void add(Isa isa) noexcept { list[count++] = isa; }
  std::span<const Isa> all() const noexcept { return {list, count}; }
};

struct State {
  CpuFeatures cpu = cpu_features(read_cpu_words());
  Isas known, compiled, testable, available;
  std::atomic<Isa> active{Isa::kScalar};

  State() noexcept {
    for (const Entry& entry : kEntries) {
      known.add(entry.isa);
      if (!entry.compiled) continue;
      compiled.add(entry.isa);
      if (!runs(cpu, entry.isa)) continue;
      testable.add(entry.isa);
      if (!isa_is_emulated(entry.isa)) available.add(entry.isa);
    }
    active.store(available.all().back(), std::memory_order_relaxed);
  }
};

State& state() noexcept {
  static State s;
  return s;
}

}  // namespace

const char* isa_name(Isa isa) noexcept { return entry_of(isa).name; }

std::span<const Isa> available_isas() noexcept { return state().available.all(); }
std::span<const Isa> testable_isas() noexcept { return state().testable.all(); }
std::span<const Isa> compiled_isas() noexcept { return state().compiled.all(); }
std::span<const Isa> all_isas() noexcept { return state().known.all(); }

bool isa_is_emulated([[maybe_unused]] Isa isa) noexcept {
#if LF_HAVE_AVX512
  return isa == Isa::kAvx512 && avx512::kEmulated;
#else
  return false;
#endif
}

bool isa_runs_on(const CpuFeatures& cpu, Isa isa) noexcept { return cpu.has(entry_of(isa).needs); }

Isa active_isa() noexcept { return state().active.load(std::memory_order_relaxed); }

bool set_active_isa(Isa isa) noexcept {
  for (const Isa usable : testable_isas()) {
    if (usable != isa) continue;
    state().active.store(isa, std::memory_order_relaxed);
    return true;
  }
  return false;
}

bool parse_isa(const char* name, Isa* isa) noexcept {
  for (const Entry& entry : kEntries) {
    if (std::strcmp(name, entry.name) != 0) continue;
    *isa = entry.isa;
    return true;
  }
  return false;
}

const CpuFeatures& cpu() noexcept { return state().cpu; }

}  // namespace loongforge::kernels
