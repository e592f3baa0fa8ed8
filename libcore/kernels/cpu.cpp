#include "kernels/cpu.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__loongarch__)
#include <sys/auxv.h>
#endif

namespace loongforge::kernels {
namespace {

bool bit(uint64_t word, int i) noexcept { return (word >> i & 1u) != 0; }

// Names of glibc's <sys/auxv.h> since 2.38 only, so these are our own: bits of AT_HWCAP.
constexpr int kHwcapLam = 1, kHwcapUal = 2, kHwcapFpu = 3, kHwcapLsx = 4, kHwcapLasx = 5,
              kHwcapCrc32 = 6;
// Bits of CPUCFG words 1 and 2 (LoongArch Reference Manual, volume 1, 2.2.10.5).
constexpr int kCpucfg1Ual = 20, kCpucfg1Crc32 = 25;
constexpr int kCpucfg2Fp = 0, kCpucfg2Lsx = 6, kCpucfg2Lasx = 7, kCpucfg2Lam = 22,
              kCpucfg2Frecipe = 25;

// State components that XCR0 names.
constexpr uint64_t kYmmState = 0x6, kZmmState = 0xE6, kTileState = 0x60000;

bool note(CpuFeatures* f, const char* name, bool present, bool enabled) noexcept {
  f->all[f->count++] = {name, present, present && enabled};
  return present && enabled;
}

void x86_features(const CpuWords& w, CpuFeatures* f) noexcept {
  const uint64_t state = bit(w.leaf1.ecx, 27) ? w.xcr0 : 0;  // OSXSAVE
  const bool ymm = (state & kYmmState) == kYmmState;
  const bool zmm = (state & kZmmState) == kZmmState;
  const bool tile = (state & kTileState) == kTileState;
  note(f, "fma", bit(w.leaf1.ecx, 12), ymm);
  note(f, "f16c", bit(w.leaf1.ecx, 29), ymm);
  const bool avx = bit(w.leaf1.ecx, 28);
  note(f, "avx2", avx && bit(w.leaf7.ebx, 5), ymm);
  note(f, "avx512f", bit(w.leaf7.ebx, 16), zmm);
  note(f, "avx512dq", bit(w.leaf7.ebx, 17), zmm);
  note(f, "avx512bw", bit(w.leaf7.ebx, 30), zmm);
  note(f, "avx512vl", bit(w.leaf7.ebx, 31), zmm);
  note(f, "avx512vbmi", bit(w.leaf7.ecx, 1), zmm);
  note(f, "avx512_bf16", bit(w.leaf7_1.eax, 5), zmm);
  note(f, "avx512_fp16", bit(w.leaf7.edx, 23), zmm);
  const bool tiles = note(f, "amx_tile", bit(w.leaf7.edx, 24), tile);
  note(f, "amx_bf16", bit(w.leaf7.edx, 22), tile);
  // AVX10 and its version; AMX's own leaf.
  const bool avx10 = bit(w.leaf7_1.edx, 19);
  f->avx10_2 = note(f, "avx10_2", avx10 && (w.leaf24.ebx & 0xFFu) >= 2, zmm);
  f->amx_fp8 = note(f, "amx_fp8", bit(w.leaf1e_1.eax, 4), tile) && tiles;
}

void loongarch_features(const CpuWords& w, CpuFeatures* f) noexcept {
  // What the kernel lists is there, whatever the words say (an emulator may leave them out).
  const auto both = [&](const char* name, bool silicon, int hwcap) {
    const bool enabled = bit(w.hwcap, hwcap);
    return note(f, name, silicon || enabled, enabled);
  };
  both("ual", bit(w.cpucfg1, kCpucfg1Ual), kHwcapUal);
  both("fpu", bit(w.cpucfg2, kCpucfg2Fp), kHwcapFpu);
  const bool lsx = both("lsx", bit(w.cpucfg2, kCpucfg2Lsx), kHwcapLsx);
  const bool lasx = both("lasx", bit(w.cpucfg2, kCpucfg2Lasx), kHwcapLasx);
  both("lam", bit(w.cpucfg2, kCpucfg2Lam), kHwcapLam);
  both("crc32", bit(w.cpucfg1, kCpucfg1Crc32), kHwcapCrc32);
  // No bit of AT_HWCAP: it works where the floating-point unit does.
  note(f, "frecipe", bit(w.cpucfg2, kCpucfg2Frecipe), bit(w.hwcap, kHwcapFpu));
  f->lasx_state = lsx && lasx                    ? LasxState::kEnabled
                  : bit(w.cpucfg2, kCpucfg2Lasx) ? LasxState::kOff
                  : lsx                          ? LasxState::kHidden
                                                 : LasxState::kNone;
}

#if defined(__x86_64__)
CpuidWords cpuid(unsigned leaf, unsigned subleaf) noexcept {
  CpuidWords r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return CpuidWords{};
  return r;
}
#elif defined(__loongarch__)
// Unprivileged: it answers for any word, with zeros for unknown ones.
template <int kWord>
uint32_t cpucfg() noexcept {
  unsigned long value = 0;
  __asm__ volatile("cpucfg %0, %1" : "=r"(value) : "r"(static_cast<unsigned long>(kWord)));
  return static_cast<uint32_t>(value);
}
#endif

}  // namespace

CpuWords read_cpu_words() noexcept {
  CpuWords w;
#if defined(__x86_64__)
  w.arch = CpuArch::kX86;
  w.leaf1 = cpuid(1, 0);
  w.leaf7 = cpuid(7, 0);
  if (w.leaf7.eax >= 1) w.leaf7_1 = cpuid(7, 1);
  w.leaf1e_1 = cpuid(0x1E, 1);
  w.leaf24 = cpuid(0x24, 0);
  if (bit(w.leaf1.ecx, 27)) {
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    w.xcr0 = static_cast<uint64_t>(high) << 32 | low;
  }
#elif defined(__loongarch__)
  w.arch = CpuArch::kLoongArch;
  w.hwcap = getauxval(AT_HWCAP);
  w.cpucfg1 = cpucfg<1>();
  w.cpucfg2 = cpucfg<2>();
#endif
  return w;
}

CpuFeatures cpu_features(const CpuWords& words) noexcept {
  CpuFeatures f;
  if (words.arch == CpuArch::kX86) x86_features(words, &f);
  if (words.arch == CpuArch::kLoongArch) loongarch_features(words, &f);
  return f;
}

const CpuFeature* CpuFeatures::find(const char* name) const noexcept {
  for (size_t i = 0; i < count; ++i)
    if (strcmp(all[i].name, name) == 0) return &all[i];
  return nullptr;
}

bool CpuFeatures::has(const char* names) const noexcept {
  for (const char* name = names; *name != 0;) {
    const size_t length = strcspn(name, " ");
    bool enabled = false;
    for (size_t i = 0; i < count; ++i)
      enabled = enabled || (all[i].enabled && strlen(all[i].name) == length &&
                            strncmp(all[i].name, name, length) == 0);
    if (!enabled) return false;
    name += length;
    name += strspn(name, " ");
  }
  return true;
}

}  // namespace loongforge::kernels
