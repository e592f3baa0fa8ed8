#include "kernels/native_fp8.h"

#include <atomic>

#include "kernels/isa.h"

namespace loongforge::kernels {
namespace {

// The tables of this build, best first: `&avx10::kNativeFp8` and so on. Ends with null.
constexpr const NativeFp8* kCompiled[] = {nullptr};

std::atomic<const NativeFp8*>& slot() noexcept {
  static std::atomic<const NativeFp8*> table{
      choose_native_fp8(kCompiled, sizeof kCompiled / sizeof kCompiled[0] - 1, cpu())};
  return table;
}

}  // namespace

const NativeFp8* choose_native_fp8(const NativeFp8* const* tables, size_t n,
                                   const CpuFeatures& cpu) noexcept {
  for (size_t i = 0; i < n; ++i)
    if (tables[i]->runs_on(cpu)) return tables[i];
  return nullptr;
}

const NativeFp8* native_fp8() noexcept { return slot().load(std::memory_order_relaxed); }

void set_native_fp8(const NativeFp8* table) noexcept {
  slot().store(table, std::memory_order_relaxed);
}

}  // namespace loongforge::kernels
