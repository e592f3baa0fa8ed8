// Detection from given words: every way in which an instruction set is there, absent or switched
// off. Words of real machines: notes on the cases.
#include "kernels/cpu.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "kernels/isa.h"

namespace loongforge::kernels {
namespace {

constexpr uint32_t bit(int i) { return uint32_t{1} << i; }

// A Zen 4 or Sapphire Rapids: everything that the kernels ask for, all state saved.
CpuWords full_x86() {
  CpuWords w;
  w.arch = CpuArch::kX86;
  w.leaf1.ecx = bit(12) | bit(27) | bit(28) | bit(29);
  w.leaf7.eax = 1;
  w.leaf7.ebx = bit(5) | bit(16) | bit(17) | bit(30) | bit(31);
  w.leaf7.ecx = bit(1);
  w.leaf7_1.eax = bit(5);
  w.xcr0 = 0xE7;
  return w;
}

// qemu's la464: CPUCFG words 1 and 2, AT_HWCAP of the user emulation.
CpuWords la464() {
  CpuWords w;
  w.arch = CpuArch::kLoongArch;
  w.hwcap = 0x7E;
  w.cpucfg1 = 0x03F2F2FE;
  w.cpucfg2 = 0x0060C0CF;
  return w;
}

struct Seen {
  bool present, enabled;
};
Seen seen(const CpuFeatures& f, const char* name) {
  const CpuFeature* feature = f.find(name);
  REQUIRE_MESSAGE(feature != nullptr, name);
  return {feature->present, feature->enabled};
}
void check(const CpuFeatures& f, const char* name, bool present, bool enabled) {
  INFO(name);
  CHECK(seen(f, name).present == present);
  CHECK(seen(f, name).enabled == enabled);
}

TEST_CASE("cpu: x86 with everything") {
  const CpuFeatures f = cpu_features(full_x86());
  CHECK(isa_runs_on(f, Isa::kAvx2));
  CHECK(isa_runs_on(f, Isa::kAvx512));
  CHECK_FALSE(isa_runs_on(f, Isa::kLsx));
  CHECK_FALSE(f.avx10_2);
  CHECK_FALSE(f.amx_fp8);
  CHECK(f.lasx_state == LasxState::kNotLoongArch);
  for (const char* name : {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq",
                           "avx512vbmi", "avx512_bf16"})
    check(f, name, true, true);
  CHECK(f.find("lasx") == nullptr);
}

TEST_CASE("cpu: each part that AVX2 or AVX-512 needs, absent, takes it away") {
  const auto without = [](auto change) {
    CpuWords w = full_x86();
    change(&w);
    return cpu_features(w);
  };
  const CpuFeatures no_bf16 = without([](CpuWords* w) { w->leaf7_1.eax = 0; });
  CHECK(isa_runs_on(no_bf16, Isa::kAvx2));
  CHECK_FALSE(isa_runs_on(no_bf16, Isa::kAvx512));
  check(no_bf16, "avx512_bf16", false, false);
  check(no_bf16, "avx512f", true, true);
  for (const int i : {16, 17, 30, 31})
    CHECK_FALSE(isa_runs_on(without([&](CpuWords* w) { w->leaf7.ebx &= ~bit(i); }), Isa::kAvx512));
  CHECK_FALSE(isa_runs_on(without([](CpuWords* w) { w->leaf7.ecx = 0; }), Isa::kAvx512));
  for (const int i : {12, 29, 28}) {
    const CpuFeatures f = without([&](CpuWords* w) { w->leaf1.ecx &= ~bit(i); });
    CHECK_FALSE(isa_runs_on(f, Isa::kAvx2));
    CHECK_FALSE(isa_runs_on(f, Isa::kAvx512));
  }
  CHECK_FALSE(isa_runs_on(without([](CpuWords* w) { w->leaf7.ebx &= ~bit(5); }), Isa::kAvx2));
}

TEST_CASE("cpu: registers that the system does not save: present, not enabled") {
  CpuWords w = full_x86();
  w.xcr0 = 0x7;  // XMM and YMM only: OSXSAVE without zmm
  const CpuFeatures no_zmm = cpu_features(w);
  CHECK(isa_runs_on(no_zmm, Isa::kAvx2));
  CHECK_FALSE(isa_runs_on(no_zmm, Isa::kAvx512));
  check(no_zmm, "avx512f", true, false);
  check(no_zmm, "avx512_bf16", true, false);
  check(no_zmm, "avx2", true, true);
  w.xcr0 = 0x67;  // opmask and the upper halves, not zmm16 to zmm31
  CHECK_FALSE(isa_runs_on(cpu_features(w), Isa::kAvx512));
  w.xcr0 = 0x3;  // no YMM
  const CpuFeatures no_ymm = cpu_features(w);
  CHECK_FALSE(isa_runs_on(no_ymm, Isa::kAvx2));
  check(no_ymm, "avx2", true, false);
  w = full_x86();
  w.leaf1.ecx &= ~bit(27);  // no OSXSAVE: XCR0 means nothing
  CHECK_FALSE(isa_runs_on(cpu_features(w), Isa::kAvx2));
}

TEST_CASE("cpu: AVX10.2 and AMX-FP8 by their leaves and their state") {
  CpuWords w = full_x86();
  w.leaf24.ebx = 2;
  CHECK_FALSE(cpu_features(w).avx10_2);  // no AVX10: the leaf does not count
  w.leaf7_1.edx = bit(19);
  CHECK(cpu_features(w).avx10_2);
  w.leaf24.ebx = 1;
  CHECK_FALSE(cpu_features(w).avx10_2);
  w = full_x86();
  w.leaf7.edx = bit(24) | bit(22);
  w.leaf1e_1.eax = bit(4);
  check(cpu_features(w), "amx_fp8", true, false);  // tiles are not saved
  CHECK_FALSE(cpu_features(w).amx_fp8);
  w.xcr0 |= 0x60000;
  CHECK(cpu_features(w).amx_fp8);
  w.leaf1e_1.eax = 0;
  CHECK_FALSE(cpu_features(w).amx_fp8);
  check(cpu_features(w), "amx_bf16", true, true);
}

TEST_CASE("cpu: LoongArch with LASX on") {
  const CpuFeatures f = cpu_features(la464());
  CHECK(isa_runs_on(f, Isa::kLsx));
  CHECK(isa_runs_on(f, Isa::kLasx));
  CHECK(f.lasx_state == LasxState::kEnabled);
  CHECK_FALSE(isa_runs_on(f, Isa::kAvx2));
  for (const char* name : {"ual", "fpu", "lsx", "lasx", "lam", "crc32"}) check(f, name, true, true);
  check(f, "frecipe", false, false);
  CpuWords newer = la464();
  newer.cpucfg2 = 0x7B60C0CF;  // qemu's max: the instructions of version 1.1
  check(cpu_features(newer), "frecipe", true, true);
}

TEST_CASE("cpu: LASX that the kernel keeps off, that is hidden, and neither LSX nor LASX") {
  CpuWords w = la464();
  w.hwcap = 0x5E;  // CPUCFG still tells of it
  const CpuFeatures off = cpu_features(w);
  CHECK(off.lasx_state == LasxState::kOff);
  CHECK(isa_runs_on(off, Isa::kLsx));
  CHECK_FALSE(isa_runs_on(off, Isa::kLasx));
  check(off, "lasx", true, false);
  check(off, "lsx", true, true);

  w.cpucfg2 &= ~bit(7);  // as qemu's lasx=off, and firmware that clears the word
  const CpuFeatures hidden = cpu_features(w);
  CHECK(hidden.lasx_state == LasxState::kHidden);
  CHECK(isa_runs_on(hidden, Isa::kLsx));
  check(hidden, "lasx", false, false);

  w.hwcap = 0x4E;
  w.cpucfg2 &= ~bit(6);
  const CpuFeatures none = cpu_features(w);
  CHECK(none.lasx_state == LasxState::kNone);
  CHECK_FALSE(isa_runs_on(none, Isa::kLsx));

  w = la464();
  w.hwcap = 0x4E;  // both in silicon, both off
  CHECK(cpu_features(w).lasx_state == LasxState::kOff);
  check(cpu_features(w), "lsx", true, false);
}

TEST_CASE("cpu: what the kernel lists counts without the silicon's word, LASX never without LSX") {
  CpuWords w = la464();
  w.cpucfg1 = w.cpucfg2 = 0;
  CHECK(isa_runs_on(cpu_features(w), Isa::kLasx));
  check(cpu_features(w), "lasx", true, true);
  w.hwcap &= ~uint64_t{bit(4)};
  CHECK_FALSE(isa_runs_on(cpu_features(w), Isa::kLasx));
}

TEST_CASE("cpu: another architecture has nothing") {
  const CpuFeatures f = cpu_features(CpuWords{});
  CHECK(f.count == 0);
  for (const Isa isa : all_isas().subspan(1)) CHECK_FALSE(isa_runs_on(f, isa));
  CHECK(isa_runs_on(f, Isa::kScalar));
}

#ifdef __x86_64__
// /proc/cpuinfo lists what the kernel lets programs use.
TEST_CASE("cpu: this processor's features are those of /proc/cpuinfo") {
  std::ifstream file("/proc/cpuinfo");
  std::string flags;
  for (std::string line; flags.empty() && std::getline(file, line);)
    if (line.starts_with("flags")) flags = line.substr(line.find(':') + 1) + " ";
  REQUIRE_FALSE(flags.empty());
  const CpuFeatures& f = cpu();
  REQUIRE(f.count > 0);
  for (size_t i = 0; i < f.count; ++i) {
    const std::string name = f.all[i].name;
    if (name == "avx10_2" || name == "amx_fp8") continue;  // older kernels have no name for them
    INFO(name);
    CHECK(f.all[i].enabled == (flags.find(" " + name + " ") != std::string::npos));
  }
}
#endif

}  // namespace
}  // namespace loongforge::kernels
