#include "graph/weight_codes.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "base/aligned.h"

using namespace loongforge;
using kernels::Elem;

namespace {

constexpr int64_t kN = 300, kK = 260;

std::vector<float> master() {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  std::vector<float> x(kN * kK);
  for (float& v : x) v = normal(random);
  x[200 * kK + 130] = 1.5f;
  return x;
}

struct Packed {
  explicit Packed(Elem elem) : memory(kernels::packed_weight_bytes(elem, kN, kK)) {
    w.packed.n = kN;
    w.packed.k = kK;
    w.packed.elem = elem;
    w.packed.data = memory.data();
    if (graph::is_fp8(elem)) w.exponents.resize(3 * 3);
    w.packed.scale_exps = w.exponents.empty() ? nullptr : w.exponents.data();
  }
  std::vector<float> values() {
    std::vector<int32_t> rows(kN);
    for (int64_t i = 0; i < kN; ++i) rows[static_cast<size_t>(i)] = static_cast<int32_t>(i);
    std::vector<float> out(kN * kK);
    kernels::gather_weight_rows(w.packed, rows.data(), kN, {out.data(), kK, Elem::kF32});
    return out;
  }
  AlignedBuffer memory;
  graph::Weight w;
};

}  // namespace

TEST_CASE(
    "pack_master: values, scales and statistics of every element and recipe, for any threads") {
  const std::vector<float> x = master();
  for (const Elem elem : {Elem::kE4M3, Elem::kE5M2, Elem::kBf16, Elem::kF32}) {
    for (const quant::ScaleRecipe scales :
         {quant::ScaleRecipe::kBlock, quant::ScaleRecipe::kTensorCurrent}) {
      quant::TensorStats first;
      for (int threads : {1, 3}) {
        ThreadPool pool(threads);
        Packed p(elem);
        const quant::TensorStats stats =
            graph::pack_master(&p.w, {x.data(), kK, Elem::kF32}, scales, true, pool);
        if (!graph::is_fp8(elem)) {
          CHECK(stats.elements == 0);
          continue;
        }
        const std::vector<float> got = p.values();
        double error = 0, norm = 0;
        for (size_t i = 0; i < x.size(); ++i) {
          error += std::pow(static_cast<double>(got[i]) - x[i], 2);
          norm += std::pow(static_cast<double>(x[i]), 2);
        }
        CHECK(stats.elements == kN * kK);
        CHECK(stats.counts.overflow == 0);
        CHECK(stats.counts.amax == 1.5f);
        CHECK(stats.relative_rms() == doctest::Approx(std::sqrt(error / norm)).epsilon(1e-6));
        CHECK(stats.relative_rms() < (elem == Elem::kE4M3 ? 0.04 : 0.08));
        // The outlier stands in one block; with one scale it is everybody's.
        const int big = kernels::scale_exponent(elem, 1.5f, 1.0f);
        int equal = 0;
        for (int8_t e : p.w.exponents) equal += e == big;
        CHECK(equal == (scales == quant::ScaleRecipe::kBlock ? 1 : 9));
        if (threads == 1) first = stats;
        CHECK(stats.error.error_squares == first.error.error_squares);
        CHECK(stats.error.relative_squares == first.error.relative_squares);
      }
    }
  }
}

TEST_CASE("a master in bf16 gives what its values in fp32 give") {
  std::vector<float> wide = master();
  std::vector<kernels::Bf16> narrow(wide.size());
  const auto n = static_cast<int64_t>(wide.size());
  kernels::cast(wide.data(), Elem::kF32, narrow.data(), Elem::kBf16, n, false);
  kernels::cast(narrow.data(), Elem::kBf16, wide.data(), Elem::kF32, n, false);
  ThreadPool pool(2);
  for (const Elem elem : {Elem::kE4M3, Elem::kE5M2, Elem::kBf16, Elem::kF32}) {
    for (const quant::ScaleRecipe scales :
         {quant::ScaleRecipe::kBlock, quant::ScaleRecipe::kTensorCurrent}) {
      Packed a(elem), b(elem);
      graph::pack_master(&a.w, {wide.data(), kK, Elem::kF32}, scales, true, pool);
      graph::pack_master(&b.w, {narrow.data(), kK, Elem::kBf16}, scales, true, pool);
      CHECK(a.w.exponents == b.w.exponents);
      CHECK(a.values() == b.values());
    }
  }
}
