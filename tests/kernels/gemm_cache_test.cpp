#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "base/aligned.h"
#include "kernels/gemm.h"
#include "kernels/isa.h"

using namespace loongforge;
using namespace loongforge::kernels;

TEST_CASE("the size of the cache decides speed, not bits") {
  const Isa before = active_isa();
  const int64_t m = 150, n = 80, k = 900;
  std::vector<float> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(n * k)),
      want(static_cast<size_t>(m * n)), got(want.size());
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<float>(static_cast<int>(i * 7919 % 251) - 125) / 64.0f;
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = static_cast<float>(static_cast<int>(i * 104729 % 241) - 120) / 128.0f;
  for (Isa isa : testable_isas()) {
    set_active_isa(isa);
    AlignedBuffer scratch(gemm_scratch_bytes());
    for (Precision precision : {Precision::kBf16, Precision::kF32}) {
      const GemmTerm term{{a.data(), k, Elem::kF32}, false, GemmTerm::B::kPlainT, nullptr,
                          {b.data(), k, Elem::kF32}, k};
      auto run = [&](int64_t cache, std::vector<float>& c) {
        gemm_set_cache(cache);
        gemm({m, n, &term, 1, {c.data(), n, Elem::kF32}, false, nullptr, precision}, 0, m, 0, n,
             scratch.data());
        gemm_set_cache(0);
      };
      run(0, want);
      for (int64_t cache : {int64_t{1}, int64_t{200 << 10}, int64_t{1 << 20}}) {
        run(cache, got);
        CHECK(std::memcmp(want.data(), got.data(), want.size() * sizeof(float)) == 0);
      }
    }
  }
  set_active_isa(before);
}
