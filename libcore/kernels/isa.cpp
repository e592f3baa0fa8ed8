#include "kernels/isa.h"

#include <atomic>
#include <cstring>

#include "kernels/dispatch.h"

namespace loongforge::kernels {

#ifdef LF_HAVE_AVX512
namespace avx512 {
extern const bool kEmulated;
}
#endif

namespace {

constexpr const char* kNames[] = {"scalar", "avx2", "avx512", "lsx", "lasx"};
constexpr int kIsas = 5;

struct State {
  CpuFeatures cpu = cpu_features(read_cpu_words());
  Isa available[kIsas] = {Isa::kScalar};  // ascending, so the last is the best
  Isa testable[kIsas] = {Isa::kScalar};
  size_t n_available = 1;
  size_t n_testable = 1;
  std::atomic<Isa> active{Isa::kScalar};

  State() noexcept {
#ifdef LF_HAVE_AVX2
    add(Isa::kAvx2, cpu.avx2, false);
#endif
#ifdef LF_HAVE_AVX512
    // The emulation is compiled with AVX2, FMA and F16C.
    add(Isa::kAvx512, avx512::kEmulated ? cpu.avx2 : cpu.avx512, avx512::kEmulated);
#endif
#ifdef LF_HAVE_LSX
    add(Isa::kLsx, cpu.lsx, false);
#endif
#ifdef LF_HAVE_LASX
    add(Isa::kLasx, cpu.lasx, false);
#endif
    active.store(available[n_available - 1], std::memory_order_relaxed);
  }

  [[maybe_unused]] void add(Isa isa, bool usable, bool emulated) noexcept {
    if (!usable) return;
    testable[n_testable++] = isa;
    if (!emulated) available[n_available++] = isa;
  }
};

State& state() noexcept {
  static State s;
  return s;
}

}  // namespace

const char* isa_name(Isa isa) noexcept { return kNames[static_cast<int>(isa)]; }

std::span<const Isa> available_isas() noexcept { return {state().available, state().n_available}; }

std::span<const Isa> testable_isas() noexcept { return {state().testable, state().n_testable}; }

bool isa_is_emulated([[maybe_unused]] Isa isa) noexcept {
#ifdef LF_HAVE_AVX512
  return isa == Isa::kAvx512 && avx512::kEmulated;
#else
  return false;
#endif
}

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
  for (int i = 0; i < kIsas; ++i) {
    if (std::strcmp(name, kNames[i]) != 0) continue;
    *isa = static_cast<Isa>(i);
    return true;
  }
  return false;
}

std::span<const Isa> compiled_isas() noexcept {
  static constexpr Isa kCompiled[] = {Isa::kScalar,
                                      LF_IF_AVX2(Isa::kAvx2, ) LF_IF_AVX512(Isa::kAvx512, )
                                          LF_IF_LSX(Isa::kLsx, ) LF_IF_LASX(Isa::kLasx, )};
  return kCompiled;
}

const CpuFeatures& cpu() noexcept { return state().cpu; }

}  // namespace loongforge::kernels
