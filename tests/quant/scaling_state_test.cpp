#include "quant/scaling_state.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "quant/statistics.h"

using namespace loongforge;
using kernels::Elem;
using quant::AllRanks;
using quant::Recipe;
using quant::ScalingState;

namespace {

Recipe delayed(int64_t window, bool adaptive = false) {
  Recipe recipe;
  recipe.scales = quant::ScaleRecipe::kDelayed;
  recipe.window = window;
  recipe.adaptive_bias = adaptive;
  return recipe;
}

// Gradients as they come with rare huge elements: normal, and one in 5000 of 2^9 to 2^20 times the
// size.
std::vector<float> heavy_tailed(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1e-6f);
  std::uniform_real_distribution<float> binades(9.0f, 20.0f);
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i)
    x[i] = normal(random) * (i % 5000 == 77 ? std::exp2(binades(random)) : 1.0f);
  return x;
}

double error_std(Elem fp8, const std::vector<float>& x, int exponent) {
  const int64_t cols = 128, rows = static_cast<int64_t>(x.size()) / cols;
  std::vector<uint8_t> codes(x.size());
  std::vector<int8_t> exps(static_cast<size_t>(rows));
  const kernels::Mat m{x.data(), cols, Elem::kF32};
  kernels::quantize_rows_at(fp8, m, cols, exponent, codes.data(), cols, exps.data(), 1, nullptr, 0,
                            rows);
  quant::TensorStats stats;
  kernels::quant_error(m, {codes.data(), cols, fp8, exps.data(), 1}, cols, 0, rows, &stats.error);
  return stats.quant_error_std();
}

}  // namespace

TEST_CASE("delayed: a step's scale follows from the steps before it, over the window") {
  ScalingState state(delayed(3));
  CHECK_FALSE(state.exponent("a", Elem::kE4M3, false, 1.0f));
  const float amax[] = {14.0f, 3.0f, 3.0f, 3.0f, 3.0f};
  const int want[] = {0, 0, 0, -2, -2};  // 14 is forgotten after three more steps
  for (int step = 0; step < 5; ++step) {
    const auto before = state.exponent("a", Elem::kE4M3, false, 1.0f);
    state.observe("a", amax[step] / 2);
    state.observe("a", amax[step]);  // the largest of the step's micro-batches
    CHECK(state.exponent("a", Elem::kE4M3, false, 1.0f) == before);
    state.end_step({}, false);
    CHECK(state.exponent("a", Elem::kE4M3, false, 1.0f) == want[step]);
  }
  CHECK(state.exponent("a", Elem::kE4M3, false, 1.1f) == -2);  // 3.3 fits
  CHECK(state.exponent("a", Elem::kE4M3, false, 1.2f) == -1);  // 3.6 does not
  CHECK(state.exponent("a", Elem::kE5M2, false, 1.0f) == -14);
}

TEST_CASE("delayed: skipped steps and infinities leave no trace, zeros give no scale") {
  ScalingState state(delayed(8));
  state.observe("a", 1.0f);
  state.end_step({}, false);
  state.observe("a", 1000.0f);
  state.end_step({}, true);
  state.observe("a", HUGE_VALF);
  state.end_step({}, false);
  CHECK(state.exponent("a", Elem::kE4M3, false, 1.0f) ==
        kernels::scale_exponent(Elem::kE4M3, 1.0f, 1.0f));
  state.observe("z", 0.0f);
  state.end_step({}, false);
  CHECK_FALSE(state.exponent("z", Elem::kE4M3, false, 1.0f));
}

TEST_CASE("delayed: the largest value of all ranks counts") {
  ScalingState state(delayed(8, true));
  AllRanks ranks;
  ranks.max = [](std::span<float> v) {
    REQUIRE(v.size() == 2);
    CHECK(v[0] == 1.0f);  // in the order of names
    v[0] = 100.0f;
  };
  std::vector<int64_t> others(kernels::kBinades, 3);
  ranks.sum = [&](std::span<int64_t> v) {
    for (size_t i = 0; i < v.size(); ++i) v[i] += others[i];
  };
  state.observe("b", 2.0f);
  state.observe("a", 1.0f);
  state.observe_binades("b", std::vector<int64_t>(kernels::kBinades, 1));
  state.end_step(ranks, false);
  CHECK(state.tensors().at("a").amax == std::vector<float>{100.0f});
  CHECK(state.tensors().at("b").amax == std::vector<float>{2.0f});
  CHECK(state.tensors().at("b").binades == std::vector<int64_t>(kernels::kBinades, 4));
}

TEST_CASE("restore: the newest of a longer history, and the same scales") {
  ScalingState state(delayed(4));
  for (float v : {8.0f, 4.0f, 2.0f, 1.0f}) {
    state.observe("a", v);
    state.end_step({}, false);
  }
  ScalingState same(delayed(4)), shorter(delayed(2));
  same.restore(state.tensors());
  shorter.restore(state.tensors());
  CHECK(same.exponent("a", Elem::kE4M3, false, 1.0f) ==
        state.exponent("a", Elem::kE4M3, false, 1.0f));
  CHECK(shorter.tensors().at("a").amax == std::vector<float>{2.0f, 1.0f});
}

TEST_CASE(
    "adaptive bias: heavy-tailed gradients, error below 0.05 where amax alone leaves above 0.15") {
  for (const Elem fp8 : {Elem::kE4M3, Elem::kE5M2}) {
    for (unsigned seed : {1u, 2u, 3u}) {
      ScalingState fixed(delayed(128)), adaptive(delayed(128, true));
      // Two steps of history, then the step that is measured.
      for (unsigned step = 0; step < 2; ++step) {
        const std::vector<float> x = heavy_tailed(128 * 2048, 100 * seed + step);
        const kernels::Mat m{x.data(), 128, Elem::kF32};
        const float amax = kernels::amax_rows(m, 128, 0, 2048);
        std::vector<int64_t> bins(kernels::kBinades, 0);
        kernels::binade_histogram(m, 128, 0, 2048, quant::kBiasRowStep, bins.data());
        for (ScalingState* s : {&fixed, &adaptive}) s->observe("g", amax);
        CHECK(adaptive.wants_binades(true));
        CHECK_FALSE(adaptive.wants_binades(false));
        CHECK_FALSE(fixed.wants_binades(true));
        adaptive.observe_binades("g", bins);
        for (ScalingState* s : {&fixed, &adaptive}) s->end_step({}, false);
      }
      const std::vector<float> x = heavy_tailed(128 * 2048, 100 * seed + 9);
      const double with_fixed = error_std(fp8, x, *fixed.exponent("g", fp8, true, 1.0f));
      const double with_adaptive = error_std(fp8, x, *adaptive.exponent("g", fp8, true, 1.0f));
      INFO("seed ", seed, " elem ", static_cast<int>(fp8), " fixed ", with_fixed, " adaptive ",
           with_adaptive);
      if (fp8 == Elem::kE4M3) {
        CHECK(with_fixed > 0.15);
        CHECK(with_adaptive < 0.05);
      } else {  // two bits of mantissa: 0.054 at best, and 32 binades, so that amax loses little
        CHECK(with_adaptive < 0.06);
        CHECK(with_adaptive <= with_fixed);
      }
    }
  }
}

TEST_CASE("adaptive bias: no tail, no change that matters; the factor shifts it") {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 0.01f);
  std::vector<float> x(128 * 512);
  for (float& v : x) v = normal(random);
  const kernels::Mat m{x.data(), 128, Elem::kF32};
  std::vector<int64_t> bins(kernels::kBinades, 0);
  kernels::binade_histogram(m, 128, 0, 512, 1, bins.data());
  const int by_amax =
      kernels::scale_exponent(Elem::kE4M3, kernels::amax_rows(m, 128, 0, 512), 1.0f);
  const int chosen = *quant::best_exponent(Elem::kE4M3, bins);
  CHECK(error_std(Elem::kE4M3, x, chosen) <= error_std(Elem::kE4M3, x, by_amax) * 1.02);
  CHECK(std::abs(chosen - by_amax) <= 2);
  ScalingState state(delayed(8, true));
  state.observe("g", 1.0f);
  state.observe_binades("g", bins);
  state.end_step({}, false);
  CHECK(state.exponent("g", Elem::kE4M3, true, 1.0f) == chosen);
  CHECK(state.exponent("g", Elem::kE4M3, true, 1.2f) == chosen + 1);
  CHECK(state.exponent("g", Elem::kE4M3, true, 0.5f) == chosen - 1);
  CHECK_FALSE(quant::best_exponent(Elem::kE4M3, std::vector<int64_t>(kernels::kBinades, 0)));
}

TEST_CASE(
    "adaptive bias: the chosen exponent is the best of all by the true error, or next to it") {
  const std::vector<float> x = heavy_tailed(128 * 1024, 4);
  std::vector<int64_t> bins(kernels::kBinades, 0);
  kernels::binade_histogram({x.data(), 128, Elem::kF32}, 128, 0, 1024, 1, bins.data());
  const double chosen = error_std(Elem::kE4M3, x, *quant::best_exponent(Elem::kE4M3, bins));
  double best = 1e9;
  for (int e = -41; e < 20; ++e) best = std::min(best, error_std(Elem::kE4M3, x, e));
  CHECK(chosen <= 1.05 * best);
}

TEST_CASE(
    "what adaptive bias saturates by its rule is planned, what is beyond it or a factor's is not") {
  quant::Recipe recipe;
  recipe.scales = quant::ScaleRecipe::kDelayed;
  recipe.activations = quant::Activations::kCompute;
  recipe.adaptive_bias = true;
  const auto planned = [](quant::ScalingState& state, int64_t overflow, bool gradient) {
    quant::StatsMap stats;
    quant::TensorStats& one = stats["a.grad"];
    one.gradient = gradient;
    one.elements = 100'000;
    one.counts.overflow = overflow;
    state.mark_planned(&stats);
    CHECK(quant::saturated_gradients(stats) == (gradient ? overflow - stats["a.grad"].planned : 0));
    return stats["a.grad"].planned;
  };
  // One in 100 is 2^20 times larger than the rest: the rule gives it up.
  std::vector<int64_t> bins(kernels::kBinades, 0);
  bins[107] = 99'000;
  bins[127] = 1'000;
  quant::ScalingState state(recipe);
  CHECK(planned(state, 500, true) == 0);  // the first step has no histogram
  state.observe_binades("a.grad", bins);
  state.end_step({}, false);
  CHECK(planned(state, 500, true) == 500);
  CHECK(planned(state, 3'000, true) == 3'000);
  CHECK(planned(state, 50'000, true) == 3'000);  // twice 1 %, and 1 %
  CHECK(planned(state, 500, false) == 0);
  CHECK(planned(state, 0, true) == 0);
  // A factor far below 1 saturates what the rule would not have.
  recipe.scale_factor = 0x1p-30f;
  bins[127] = 0;
  quant::ScalingState tight(recipe);
  tight.observe_binades("a.grad", bins);
  tight.end_step({}, false);
  CHECK(planned(tight, 90'000, true) == 1'000);
  // Without adaptive bias nothing is.
  recipe.adaptive_bias = false;
  quant::ScalingState plain(recipe);
  plain.observe_binades("a.grad", bins);
  plain.end_step({}, false);
  CHECK(planned(plain, 500, true) == 0);
}
