#include "optim/adamw.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/isa.h"
#include "kernels/quant.h"
#include "support/expect_error.h"

using namespace loongforge;
using optim::AdamW;
using optim::AdamWOptions;
using optim::ParameterView;

namespace {

// a is larger than one task's share; between b and c lie floats of nobody.
std::vector<ParameterView> views() {
  return {{"a", 160, 129, 0, true}, {"b", 1, 33, 20640, false}, {"c", 7, 5, 20700, true}};
}
constexpr size_t kFloats = 20735;

std::vector<float> random_floats(unsigned seed, float width) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, width);
  std::vector<float> out(kFloats);
  for (float& x : out) x = normal(random);
  return out;
}

// torch.optim.AdamW as documented, in double.
struct Reference {
  std::vector<double> p, m, v;
  int t = 0;
  explicit Reference(const std::vector<float>& start)
      : p(start.begin(), start.end()), m(kFloats), v(kFloats) {}
  void step(const std::vector<float>& grad, double lr, double scale, const AdamWOptions& o) {
    ++t;
    for (const ParameterView& view : views()) {
      for (int64_t k = view.offset; k < view.offset + view.size(); ++k) {
        auto i = static_cast<size_t>(k);
        double g = grad[i] * scale;
        if (view.decay) p[i] -= lr * o.weight_decay * p[i];
        m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
        v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
        double m_hat = m[i] / (1 - std::pow(o.beta1, t));
        double v_hat = v[i] / (1 - std::pow(o.beta2, t));
        p[i] -= lr * m_hat / (std::sqrt(v_hat) + o.eps);
      }
    }
  }
};

std::vector<float> run(const AdamWOptions& options, int threads, int steps) {
  auto p = random_floats(1, 0.5f);
  AdamW adamw(views(), options);
  ThreadPool pool(threads);
  for (int s = 0; s < steps; ++s) {
    auto g = random_floats(100u + static_cast<unsigned>(s), 2.0f);
    adamw.step(p.data(), g.data(), 1e-3, 0.25, pool);
  }
  return p;
}

}  // namespace

TEST_CASE("adamw: follows the documented update in double") {
  for (AdamWOptions options :
       {AdamWOptions{}, AdamWOptions{.beta2 = 0.95, .weight_decay = 0.1},
        AdamWOptions{.beta1 = 0.0, .beta2 = 0.999, .eps = 1e-3, .weight_decay = 0.01}}) {
    auto p = random_floats(1, 0.5f);
    auto start = p;
    Reference reference(p);
    AdamW adamw(views(), options);
    ThreadPool pool(2);
    for (int s = 0; s < 30; ++s) {
      auto g = random_floats(100u + static_cast<unsigned>(s), 2.0f);
      double lr = 1e-3 * (s + 1) / 30, scale = 0.25;
      adamw.step(p.data(), g.data(), lr, scale, pool);
      reference.step(g, lr, scale, options);
    }
    CHECK(adamw.steps() == 30);
    double worst = 0, moved = 0;
    for (const ParameterView& view : views()) {
      for (int64_t k = view.offset; k < view.offset + view.size(); ++k) {
        auto i = static_cast<size_t>(k);
        worst = std::max(worst, std::abs(p[i] - reference.p[i]));
        moved = std::max(moved, std::abs(double{p[i]} - start[i]));
      }
    }
    // 30 roundings of a parameter near 1 are 30 * 6e-8 at the most, and that of the update itself
    // is far below.
    CHECK(worst < 2e-6);
    CHECK(moved > 3e-3);
  }
}

TEST_CASE("adamw: the moments are those of the formula") {
  auto p = random_floats(1, 0.5f);
  Reference reference(p);
  AdamW adamw(views(), {});
  ThreadPool pool(3);
  for (unsigned s = 0; s < 10; ++s) {
    auto g = random_floats(100u + s, 2.0f);
    adamw.step(p.data(), g.data(), 1e-3, 1.0, pool);
    reference.step(g, 1e-3, 1.0, {});
  }
  auto state = adamw.state();
  REQUIRE(state.size() == 6);
  size_t number = 0;
  for (const ParameterView& view : views()) {
    CHECK(state[number].name == view.name + ".exp_avg");
    CHECK(state[number + 1].name == view.name + ".exp_avg_sq");
    for (size_t i = 0; i < static_cast<size_t>(view.size()); ++i) {
      size_t at = static_cast<size_t>(view.offset) + i;
      REQUIRE(std::abs(state[number].values()[i] - reference.m[at]) < 1e-6);
      // 1 - 0.999f is 1.3e-5 below 0.001, in the moment and in its correction alike.
      REQUIRE(std::abs(state[number + 1].values()[i] / reference.v[at] - 1) < 2e-5);
    }
    number += 2;
  }
}

TEST_CASE("adamw: the bias correction cancels the rounding of beta") {
  // With one gradient throughout, m_hat = g and v_hat = g^2: each step moves by lr exactly.
  std::vector<ParameterView> one{{"x", 1, 1, 0, false}};
  AdamW adamw(one, {.eps = 0});
  ThreadPool pool(1);
  float p = 0, g = 3;
  for (int s = 1; s <= 50; ++s) {
    adamw.step(&p, &g, 0.5, 1.0, pool);
    REQUIRE(std::abs(p + 0.5 * s) < 4e-7 * s * s);
  }
}

TEST_CASE("adamw: the same bits for every thread count and ISA, floats of nobody untouched") {
  AdamWOptions options{.weight_decay = 0.1};
  kernels::Isa before = kernels::active_isa();
  REQUIRE(kernels::set_active_isa(kernels::Isa::kScalar));
  auto expected = run(options, 1, 5);
  auto start = random_floats(1, 0.5f);
  for (size_t i = 20673; i < 20700; ++i) CHECK(expected[i] == start[i]);
  for (kernels::Isa isa : kernels::testable_isas()) {
    REQUIRE(kernels::set_active_isa(isa));
    CAPTURE(kernels::isa_name(isa));
    for (int threads : {1, 2, 5}) CHECK(run(options, threads, 5) == expected);
  }
  kernels::set_active_isa(before);
}

TEST_CASE("adamw: weight decay is for 2-D weights only") {
  auto p = random_floats(1, 0.5f);
  auto start = p;
  AdamW adamw(views(), {.weight_decay = 0.5});
  ThreadPool pool(2);
  std::vector<float> zero(kFloats, 0.0f);
  adamw.step(p.data(), zero.data(), 0.1, 1.0, pool);
  for (const ParameterView& view : views()) {
    float factor = view.decay ? 1.0f - 0.1f * 0.5f : 1.0f;
    for (int64_t k = view.offset; k < view.offset + view.size(); ++k) {
      REQUIRE(p[static_cast<size_t>(k)] == start[static_cast<size_t>(k)] * factor);
    }
  }
}

TEST_CASE("adamw: a restored state goes on with the same bits") {
  AdamWOptions options{.weight_decay = 0.1};
  auto whole = run(options, 2, 8);
  auto p = random_floats(1, 0.5f);
  std::vector<std::vector<float>> saved;
  ThreadPool pool(2);
  int64_t steps;
  {
    AdamW first(views(), options);
    for (unsigned s = 0; s < 5; ++s) {
      auto g = random_floats(100u + s, 2.0f);
      first.step(p.data(), g.data(), 1e-3, 0.25, pool);
    }
    for (const auto& array : first.state())
      saved.emplace_back(array.values().begin(), array.values().end());
    steps = first.steps();
  }
  AdamW second(views(), options);
  auto state = second.state();
  REQUIRE(state.size() == saved.size());
  for (size_t i = 0; i < state.size(); ++i) {
    REQUIRE(state[i].values().size() == saved[i].size());
    std::copy(saved[i].begin(), saved[i].end(), state[i].values().begin());
  }
  second.set_steps(steps);
  for (unsigned s = 5; s < 8; ++s) {
    auto g = random_floats(100u + s, 2.0f);
    second.step(p.data(), g.data(), 1e-3, 0.25, pool);
  }
  CHECK(p == whole);
}

TEST_CASE("adamw: fresh moments are zero, and their bytes as told") {
  AdamW adamw(views(), {});
  for (const auto& array : adamw.state()) {
    CHECK(
        std::all_of(array.values().begin(), array.values().end(), [](float x) { return x == 0; }));
  }
  CHECK(AdamW::state_bytes(views(), optim::MomentFormat::kF32) == 2 * 4 * kFloats);
  CHECK(AdamW::state_bytes({}, optim::MomentFormat::kF32) == 0);
  CHECK(AdamW({}, {}).state().empty());
}

TEST_CASE("adamw: options out of range are refused by name") {
  LF_CHECK_ERROR(AdamW(views(), {.beta1 = 1.0}), ErrorCode::kUsage, "adam_beta1");
  LF_CHECK_ERROR(AdamW(views(), {.beta2 = -0.1}), ErrorCode::kUsage, "adam_beta2");
  LF_CHECK_ERROR(AdamW(views(), {.eps = -1}), ErrorCode::kUsage, "adam_epsilon");
  LF_CHECK_ERROR(AdamW(views(), {.weight_decay = std::nan("")}), ErrorCode::kUsage, "weight_decay");
}

namespace {

// Draws of a generator that is fast and good enough here.
class MixedDraws final : public optim::RoundingSource {
 public:
  void fill(uint32_t stream, uint64_t step, int64_t element, std::span<uint16_t> draws,
            int) override {
    for (size_t i = 0; i < draws.size(); ++i) {
      uint64_t x = (uint64_t{stream} << 40) ^ (step << 24) ^ (static_cast<uint64_t>(element) + i);
      x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
      x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
      draws[i] = static_cast<uint16_t>(x >> 40);
    }
  }
};

struct NarrowRun {
  std::vector<float> p;
  std::vector<std::vector<uint8_t>> state;
};

// 100 steps; master in bf16: of a and c.
NarrowRun run_narrow(optim::MomentFormat moments, bool bf16_masters, int threads,
                     Reference* reference = nullptr) {
  auto list = views();
  if (bf16_masters)
    for (ParameterView& view : list)
      if (view.decay) view.master = kernels::Elem::kBf16;
  MixedDraws draws;
  AdamWOptions options;
  options.moments = moments;
  options.rounding = &draws;
  AdamW adamw(list, options);
  ThreadPool pool(threads);
  NarrowRun run{random_floats(1, 0.5f), {}};
  std::vector<kernels::Bf16> narrow(kFloats);
  kernels::cast(run.p.data(), kernels::Elem::kF32, narrow.data(), kernels::Elem::kBf16,
                static_cast<int64_t>(kFloats), false);
  for (unsigned s = 0; s < 100; ++s) {
    // A gradient with a direction of its own in each element, and noise beside it.
    auto g = random_floats(7, 1.0f), noise = random_floats(100u + s, 1.0f);
    for (size_t i = 0; i < g.size(); ++i) g[i] += noise[i];
    adamw.step({run.p.data(), narrow.data()}, g.data(), 1e-3, 0.25, pool);
    if (reference != nullptr) reference->step(g, 1e-3, 0.25, options);
  }
  for (const ParameterView& view : list)
    if (view.master == kernels::Elem::kBf16)
      kernels::cast(narrow.data() + view.offset, kernels::Elem::kBf16, run.p.data() + view.offset,
                    kernels::Elem::kF32, view.size(), false);
  for (const auto& array : adamw.state())
    run.state.emplace_back(array.bytes.begin(), array.bytes.end());
  return run;
}

}  // namespace

TEST_CASE("narrow moments and masters: within their stated error of AdamW in double") {
  using optim::MomentFormat;
  const auto start = random_floats(1, 0.5f);
  struct Case {
    MomentFormat moments;
    bool bf16_masters;
    double bound;  // relative L2 of what the parameters moved by
  };
  for (const Case& c :
       {Case{MomentFormat::kF32, false, 1e-4}, Case{MomentFormat::kBf16, false, 0.01},
        Case{MomentFormat::kFp8, false, 0.10}}) {
    Reference reference(start);
    const NarrowRun run = run_narrow(c.moments, c.bf16_masters, 2, &reference);
    double error = 0, moved = 0;
    for (const ParameterView& view : views())
      for (int64_t k = view.offset; k < view.offset + view.size(); ++k) {
        const auto i = static_cast<size_t>(k);
        error += std::pow(run.p[i] - reference.p[i], 2);
        moved += std::pow(reference.p[i] - static_cast<double>(start[i]), 2);
      }
    INFO(optim::moment_format_name(c.moments), " relative error ", std::sqrt(error / moved));
    CHECK(std::sqrt(error / moved) < c.bound);
    if (c.moments != MomentFormat::kF32) CHECK(std::sqrt(error / moved) > 1e-4);
  }
  // bf16 masters: each within a few bf16 steps of the double one, the mean error without bias.
  Reference reference(start);
  const NarrowRun run = run_narrow(MomentFormat::kF32, true, 2, &reference);
  double bias = 0, square = 0;
  int64_t n = 0;
  for (int64_t k = 0; k < views()[0].size(); ++k, ++n) {
    const auto i = static_cast<size_t>(k);
    const double step =
        std::exp2(std::floor(std::log2(std::max(0.02, std::abs(reference.p[i]))))) / 128;
    const double off = (run.p[i] - reference.p[i]) / step;
    bias += off;
    square += off * off;
  }
  bias /= static_cast<double>(n);
  INFO("mean ", bias, " rms ", std::sqrt(square / static_cast<double>(n)), " bf16 steps");
  CHECK(std::abs(bias) < 0.05);
  CHECK(std::sqrt(square / static_cast<double>(n)) < 5.5);  // a random walk of 100 steps, 0.45 each
}

TEST_CASE("narrow state: the same bytes for any threads, a size as stated, restored to the bit") {
  using optim::MomentFormat;
  for (const MomentFormat moments : {MomentFormat::kBf16, MomentFormat::kFp8}) {
    const NarrowRun one = run_narrow(moments, true, 1), three = run_narrow(moments, true, 3);
    CHECK(one.p == three.p);
    CHECK(one.state == three.state);
    size_t bytes = 0;
    for (const auto& array : one.state) bytes += array.size();
    const size_t said = AdamW::state_bytes(views(), moments);
    CHECK(bytes <= said);
    CHECK(said < bytes + 1024);  // gaps between views
  }
  CHECK(AdamW::state_bytes(views(), MomentFormat::kBf16) == 2 * 2 * kFloats);
  CHECK(AdamW::state_bytes(views(), MomentFormat::kFp8) < 2 * kFloats + kFloats / 32);
}

TEST_CASE("set_moment: numbers of another format, rounded once") {
  MixedDraws draws;
  for (const optim::MomentFormat moments :
       {optim::MomentFormat::kF32, optim::MomentFormat::kBf16, optim::MomentFormat::kFp8}) {
    AdamWOptions options;
    options.moments = moments;
    options.rounding = &draws;
    AdamW adamw(views(), options);
    const std::vector<float> values(33, 0.5f);  // exact in every format
    adamw.set_moment(1, false, values);
    const auto state = adamw.state();
    const auto it = std::find_if(state.begin(), state.end(),
                                 [](const auto& a) { return a.name == "b.exp_avg"; });
    REQUIRE(it != state.end());
    const auto width = it->bytes.size() / 33;
    CHECK(width == (moments == optim::MomentFormat::kF32    ? 4u
                    : moments == optim::MomentFormat::kBf16 ? 2u
                                                            : 1u));
    for (size_t i = width; i < it->bytes.size(); ++i) CHECK(it->bytes[i] == it->bytes[i - width]);
  }
  CHECK(optim::parse_moment_format("fp8") == optim::MomentFormat::kFp8);
  CHECK_FALSE(optim::parse_moment_format("int8"));
}
