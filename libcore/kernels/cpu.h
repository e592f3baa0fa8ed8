// What the processor has and what of it may be used: CPUID and XCR0 on x86-64, the CPUCFG words and
// AT_HWCAP on LoongArch. The silicon's words say what is present; XCR0 (which registers the system
// saves) and AT_HWCAP (what the kernel switched on) say what is enabled. An instruction that is
// present and not enabled traps. Thread-safety: pure functions of their arguments; read_cpu_words()
// reads the processor and nothing else.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/api.h"

namespace loongforge::kernels {

enum class CpuArch : uint8_t { kOther, kX86, kLoongArch };

struct CpuidWords {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// The raw sources. A leaf that the processor lacks is all zeros.
struct CpuWords {
  CpuArch arch = CpuArch::kOther;
  // x86-64
  CpuidWords leaf1, leaf7, leaf7_1, leaf1e_1, leaf24;
  uint64_t xcr0 = 0;  // 0 where the system does not let it be read (no OSXSAVE)
  // LoongArch
  uint64_t hwcap = 0;
  uint32_t cpucfg1 = 0, cpucfg2 = 0;
};

LF_API CpuWords read_cpu_words() noexcept;

struct CpuFeature {
  const char* name;  // as /proc/cpuinfo spells it
  bool present;      // the silicon has it
  bool enabled;      // and the system lets programs use it
};

enum class LasxState : uint8_t {
  kNotLoongArch,
  kEnabled,
  kOff,     // the silicon has it, the firmware or the kernel keeps it off
  kHidden,  // LSX, and no word of LASX: a core without it, or firmware that hides it
  kNone,    // not even LSX
};

struct CpuFeatures {
  static constexpr size_t kMax = 24;
  CpuFeature all[kMax] = {};
  size_t count = 0;

  // Instructions that multiply FP8: see native_fp8.h. No processor that this was tried on has them.
  bool avx10_2 = false;
  bool amx_fp8 = false;
  LasxState lasx_state = LasxState::kNotLoongArch;

  const CpuFeature* find(
      const char* name) const noexcept;        // nullptr: not a feature of this architecture
  bool has(const char* names) const noexcept;  // all of "fma f16c" are enabled
};

LF_API CpuFeatures cpu_features(const CpuWords& words) noexcept;

}  // namespace loongforge::kernels
