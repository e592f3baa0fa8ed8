#include "kernels/isa.h"

#include <atomic>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__loongarch__)
#include <sys/auxv.h>
#endif

namespace loongforge::kernels {

#ifdef LF_HAVE_AVX512
namespace avx512 {
extern const bool kEmulated;
}
#endif

namespace {

constexpr const char* kNames[] = {"scalar", "avx2", "avx512", "lsx", "lasx"};
constexpr int kIsas = 5;

struct Cpu {
  bool avx2 = false;    // AVX2, FMA and F16C
  bool avx512 = false;  // F, BW, VL, DQ, VBMI and BF16
  bool lsx = false;
  bool lasx = false;
  char features[160] = {};

  void note(bool present, const char* name) noexcept {
    if (!present) return;
    if (features[0] != '\0')
      std::strncat(features, " ", sizeof features - std::strlen(features) - 1);
    std::strncat(features, name, sizeof features - std::strlen(features) - 1);
  }
};

#if defined(__x86_64__)

struct CpuidWords {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuidWords cpuid(unsigned leaf, unsigned subleaf) noexcept {
  CpuidWords r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return CpuidWords{};
  return r;
}

// Which register state the operating system saves: without it the instructions trap although the
// CPU has them.
unsigned saved_state() noexcept {
  unsigned eax = 0, edx = 0;
  __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  return eax;
}

Cpu detect() noexcept {
  Cpu cpu;
  const auto bit = [](unsigned word, int i) { return (word >> i & 1u) != 0; };
  const CpuidWords one = cpuid(1, 0);
  const CpuidWords seven = cpuid(7, 0);
  const CpuidWords seven_one = seven.eax >= 1 ? cpuid(7, 1) : CpuidWords{};
  const unsigned state = bit(one.ecx, 27) ? saved_state() : 0;  // OSXSAVE
  const bool ymm = (state & 0x6u) == 0x6u;
  const bool zmm = (state & 0xE6u) == 0xE6u;
  const bool fma = ymm && bit(one.ecx, 12);
  const bool f16c = ymm && bit(one.ecx, 29);
  const bool avx2 = ymm && bit(one.ecx, 28) && bit(seven.ebx, 5);
  const bool f = zmm && bit(seven.ebx, 16);
  const bool dq = zmm && bit(seven.ebx, 17);
  const bool bw = zmm && bit(seven.ebx, 30);
  const bool vl = zmm && bit(seven.ebx, 31);
  const bool vbmi = zmm && bit(seven.ecx, 1);
  const bool bf16 = zmm && bit(seven_one.eax, 5);
  cpu.avx2 = avx2 && fma && f16c;
  cpu.avx512 = cpu.avx2 && f && dq && bw && vl && vbmi && bf16;
  cpu.note(avx2, "avx2");
  cpu.note(fma, "fma");
  cpu.note(f16c, "f16c");
  cpu.note(f, "avx512f");
  cpu.note(dq, "avx512dq");
  cpu.note(bw, "avx512bw");
  cpu.note(vl, "avx512vl");
  cpu.note(vbmi, "avx512vbmi");
  cpu.note(bf16, "avx512bf16");
  return cpu;
}

#elif defined(__loongarch__)

Cpu detect() noexcept {
  Cpu cpu;
  const unsigned long capabilities = getauxval(AT_HWCAP);
  cpu.lsx = (capabilities & (1ul << 4)) != 0;
  cpu.lasx = (capabilities & (1ul << 5)) != 0;
  cpu.note(cpu.lsx, "lsx");
  cpu.note(cpu.lasx, "lasx");
  return cpu;
}

#else

Cpu detect() noexcept { return Cpu{}; }

#endif

struct State {
  Cpu cpu = detect();
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

const char* isa_features() noexcept { return state().cpu.features; }

}  // namespace loongforge::kernels
