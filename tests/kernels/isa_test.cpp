#include "kernels/isa.h"

#include <cstdio>

#include "kernels/kernel_test.h"

namespace loongforge::kernels {
namespace {

using test::UseIsa;

TEST_CASE("isa: prints which ISA these tests ran, and how") {
  std::printf("CPU features found:");
  for (size_t i = 0; i < cpu().count; ++i)
    if (cpu().all[i].present)
      std::printf(" %s%s", cpu().all[i].name, cpu().all[i].enabled ? "" : "(off)");
  std::printf("\n");
  for (const Isa isa : testable_isas())
    std::printf("ISA tested: %s\n", test::isa_label(isa).c_str());
  CHECK(testable_isas().front() == Isa::kScalar);
}

TEST_CASE("isa: names are parsed back, others are not") {
  for (const Isa isa : all_isas()) {
    Isa parsed = isa == Isa::kScalar ? Isa::kAvx2 : Isa::kScalar;
    CHECK(parse_isa(isa_name(isa), &parsed));
    CHECK(parsed == isa);
  }
  Isa parsed = Isa::kLsx;
  for (const char* wrong : {"", "AVX2", "avx", "avx512f", "scalar "})
    CHECK_FALSE(parse_isa(wrong, &parsed));
  CHECK(parsed == Isa::kLsx);
}

TEST_CASE("isa: the best available one is active, and available ones are testable") {
  CHECK(available_isas().front() == Isa::kScalar);
  CHECK(active_isa() == available_isas().back());
  for (const Isa isa : available_isas()) {
    bool testable = false;
    for (const Isa other : testable_isas()) testable = testable || other == isa;
    CHECK(testable);
    CHECK_FALSE(isa_is_emulated(isa));
  }
}

TEST_CASE("isa: an ISA that is not here cannot be set") {
  for (const Isa isa : all_isas()) {
    bool testable = false;
    for (const Isa other : testable_isas()) testable = testable || other == isa;
    const Isa before = active_isa();
    CHECK(set_active_isa(isa) == testable);
    CHECK(active_isa() == (testable ? isa : before));
    set_active_isa(before);
  }
}

#ifdef __x86_64__
TEST_CASE("isa: what is used follows from the features found") {
  const auto has = [&](const char* name) { return cpu().find(name)->enabled; };
  const bool avx2 = has("avx2") && has("fma") && has("f16c");
  const bool avx512 = avx2 && has("avx512f") && has("avx512bw") && has("avx512vl") &&
                      has("avx512dq") && has("avx512vbmi") && has("avx512_bf16");
  bool lists_avx2 = false, lists_avx512 = false;
  for (const Isa isa : available_isas()) {
    lists_avx2 = lists_avx2 || isa == Isa::kAvx2;
    lists_avx512 = lists_avx512 || isa == Isa::kAvx512;
  }
  CHECK(lists_avx2 == avx2);
  CHECK(lists_avx512 == (avx512 && !isa_is_emulated(Isa::kAvx512)));
#ifdef __GNUC__
  __builtin_cpu_init();
  CHECK(has("avx2") == static_cast<bool>(__builtin_cpu_supports("avx2")));
  CHECK(has("fma") == static_cast<bool>(__builtin_cpu_supports("fma")));
  CHECK(has("avx512bw") == static_cast<bool>(__builtin_cpu_supports("avx512bw")));
  CHECK(has("avx512vbmi") == static_cast<bool>(__builtin_cpu_supports("avx512vbmi")));
  CHECK(has("avx512_bf16") == static_cast<bool>(__builtin_cpu_supports("avx512bf16")));
#endif
}
#endif

}  // namespace
}  // namespace loongforge::kernels
