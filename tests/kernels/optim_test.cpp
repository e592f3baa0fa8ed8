// Optimizer kernels against double formulas, and bit for bit between ISAs.
#include "kernels/optim.h"

#include "kernels/kernel_test.h"
#include "kernels/quant.h"

namespace loongforge::kernels {
namespace {

using test::Bytes;
using test::UseIsa;

std::vector<float> normals(size_t n, unsigned seed, float scale) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

constexpr AdamW kStep = {1e-3, 0.9,  0.999, 1e-8,
                         0.1,  0.25, 0.0,   0.0};  // bias1, sqrt_bias2: per step

TEST_CASE("adamw: the formula in double, over several steps and on every ISA") {
  const size_t n = 1003;
  const std::vector<float> p0 = normals(n, 1, 0.1f);
  const auto run = [&](size_t shift) {
    std::vector<float> p = p0, m(n, 0.0f), v(n, 0.0f);
    for (unsigned t = 1; t <= 3; ++t) {
      AdamW h = kStep;
      h.bias1 = 1 - std::pow(0.9, t);
      h.sqrt_bias2 = std::sqrt(1 - std::pow(0.999, t));
      const std::vector<float> g = normals(n, 10 + t, 0.02f);
      adamw(h, p.data() + shift, m.data() + shift, v.data() + shift, g.data() + shift,
            static_cast<int64_t>(n - shift));
    }
    Bytes out;
    test::append(&out, p);
    test::append(&out, m);
    test::append(&out, v);
    return out;
  };
  for (const size_t shift : {0, 1, 5, 16})
    test::check_same_on_every_isa([&] { return run(shift); });

  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    const Bytes out = run(0);
    std::vector<float> p(n);
    std::memcpy(p.data(), out.data(), n * 4);
    double worst = 0;
    for (size_t i = 0; i < n; ++i) {
      double param = static_cast<double>(p0[i]), m = 0, v = 0;
      for (unsigned t = 1; t <= 3; ++t) {
        const double g = static_cast<double>(normals(n, 10 + t, 0.02f)[i]) * 0.25;
        param *= 1 - 1e-3 * 0.1;
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        param -= 1e-3 / (1 - std::pow(0.9, t)) * m /
                 (std::sqrt(v) / std::sqrt(1 - std::pow(0.999, t)) + 1e-8);
      }
      worst =
          std::max(worst, std::fabs(static_cast<double>(p[i]) - param) / (std::fabs(param) + 3e-3));
    }
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("accumulate, scale: exact, every length and start") {
  const std::vector<float> a = normals(100, 3, 1.0f), b = normals(100, 4, 1.0f);
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    INFO("isa: ", test::isa_label(isa));
    for (int64_t n = 0; n < 70; ++n) {
      std::vector<float> sum = a, scaled = a;
      accumulate(sum.data() + 1, b.data() + 3, n);
      scale(scaled.data() + 1, 0.3f, n);
      size_t wrong = 0;
      for (int64_t i = 0; i < 100; ++i) {
        const auto k = static_cast<size_t>(i);
        const bool inside = i >= 1 && i < n + 1;
        wrong += sum[k] != (inside ? a[k] + b[k + 2] : a[k]);
        wrong += scaled[k] != (inside ? a[k] * 0.3f : a[k]);
      }
      CHECK(wrong == 0);
    }
  }
}

// The rule: element j in lane j % 16, lanes by one tree.
double lanes_of_double(const std::vector<float>& x, size_t n, bool squares) {
  double lane[16] = {};
  for (size_t j = 0; j < n; ++j) {
    const double v = static_cast<double>(x[j]);
    lane[j % 16] += squares ? v * v : v;
  }
  for (int width = 8; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  return lane[0];
}

TEST_CASE("sum, sum_squares: 16 lanes and one tree, to the bit") {
  const std::vector<float> x = normals(5000, 8, 1e3f);
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    INFO("isa: ", test::isa_label(isa));
    for (const size_t n : {0, 1, 15, 16, 17, 100, 4999}) {
      CHECK(sum(x.data(), static_cast<int64_t>(n)) == lanes_of_double(x, n, false));
      CHECK(sum_squares(x.data(), static_cast<int64_t>(n)) == lanes_of_double(x, n, true));
    }
  }
}

TEST_CASE("all_finite: finds one infinity or NaN anywhere, of both element types") {
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    INFO("isa: ", test::isa_label(isa));
    for (const Elem elem : test::float_elems()) {
      for (int64_t n = 1; n < 70; n += 3) {
        test::TestMatrix x(1, n, elem);
        for (int64_t j = 0; j < n; ++j) x.set(0, j, j % 2 == 0 ? 3.3e38f : -1e-40f);
        CHECK(all_finite(x.in().data, elem, n));
        for (int64_t j = 0; j < n; j += 5) {
          for (const float bad : {HUGE_VALF, -HUGE_VALF, NAN, -NAN}) {
            test::TestMatrix y = x;
            y.set(0, j, bad);
            CHECK_FALSE(all_finite(y.in().data, elem, n));
          }
        }
      }
      CHECK(all_finite(nullptr, elem, 0));
    }
  }
}

// Narrow arrays of an update and what they stand for.
struct Narrow {
  Narrow(size_t n, Elem param, Elem moments)
      : param_elem(param),
        moment_elem(moments),
        p(n * static_cast<size_t>(elem_bytes(param))),
        m(n * static_cast<size_t>(elem_bytes(moments))),
        v(m.size()),
        m_exps(n / 128 + 1),
        v_exps(n / 128 + 1) {}
  AdamWArrays arrays(const uint16_t* param_draws, const uint16_t* moment_draws) {
    return {p.data(),      param_elem,    m.data(),    v.data(),    moment_elem,
            m_exps.data(), v_exps.data(), param_draws, moment_draws};
  }
  std::vector<float> moment(bool second, size_t n) const {
    std::vector<float> out(n);
    read_moments(second ? v.data() : m.data(), second ? v_exps.data() : m_exps.data(), moment_elem,
                 second, out.data(), static_cast<int64_t>(n));
    return out;
  }
  Elem param_elem, moment_elem;
  std::vector<uint8_t> p, m, v;
  std::vector<int8_t> m_exps, v_exps;
};

std::vector<uint16_t> draws_of(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint16_t> out(n);
  for (uint16_t& d : out) d = static_cast<uint16_t>(random());
  return out;
}

TEST_CASE("adamw_narrow: the same bits on every ISA, and fp32 arrays as adamw") {
  const size_t n = 1003;
  const std::vector<float> p0 = normals(n, 1, 0.1f);
  for (const Elem param : {Elem::kF32, Elem::kBf16}) {
    for (const Elem moments : {Elem::kF32, Elem::kBf16, Elem::kE4M3}) {
      Bytes want;
      for (const Isa isa : testable_isas()) {
        const UseIsa use(isa);
        INFO("isa: ", test::isa_label(isa));
        Narrow a(n, param, moments);
        cast(p0.data(), Elem::kF32, a.p.data(), param, static_cast<int64_t>(n), false);
        std::vector<float> p = p0, m(n, 0.0f), v(n, 0.0f);
        for (unsigned t = 1; t <= 3; ++t) {
          AdamW h = kStep;
          h.bias1 = 1 - std::pow(0.9, t);
          h.sqrt_bias2 = std::sqrt(1 - std::pow(0.999, t));
          const std::vector<float> g = normals(n, 10 + t, 0.02f);
          const std::vector<uint16_t> one = draws_of(n, t), two = draws_of(n, 50 + t);
          adamw_narrow(h, a.arrays(one.data(), two.data()), g.data(), static_cast<int64_t>(n));
          adamw(h, p.data(), m.data(), v.data(), g.data(), static_cast<int64_t>(n));
        }
        Bytes got;
        for (const auto* part : {&a.p, &a.m, &a.v}) test::append(&got, *part);
        test::append(&got, a.m_exps);
        test::append(&got, a.v_exps);
        if (want.empty()) want = got;
        CHECK(got == want);
        if (param == Elem::kF32 && moments == Elem::kF32) {
          CHECK(memcmp(a.p.data(), p.data(), n * 4) == 0);
          CHECK(memcmp(a.m.data(), m.data(), n * 4) == 0);
          CHECK(memcmp(a.v.data(), v.data(), n * 4) == 0);
        }
      }
    }
  }
}

// Every draw once: each value is stored as one of its two neighbours, and the mean over all draws
// is the value (to 2^-16 of a step).
TEST_CASE("stochastic rounding: neighbours only, without bias") {
  const size_t n = 128;
  std::vector<float> g = normals(n, 5, 1e-3f);
  g[3] = 0.0f;
  for (size_t i = 64; i < 96; ++i) g[i] *= 0x1p-12f;  // subnormal FP8 in this block, or less
  for (const Elem moments : {Elem::kBf16, Elem::kE4M3}) {
    AdamW h = kStep;  // from nothing, without steps: m = 0.1 g, v = 0.001 g^2, p stays
    h.lr = 0;
    h.bias1 = h.sqrt_bias2 = 1;
    h.grad_scale = 1;
    std::vector<double> sum_m(n), sum_root(n), low(n, 1e30), high(n, -1e30);
    constexpr unsigned kDraws = 1 << 16;
    int64_t lost = 0;  // second moments that became 0
    Narrow a(n, Elem::kF32, moments);
    for (unsigned d = 0; d < kDraws; ++d) {
      std::fill(a.m.begin(), a.m.end(), uint8_t{0});
      std::fill(a.v.begin(), a.v.end(), uint8_t{0});
      const std::vector<uint16_t> draws(n, static_cast<uint16_t>(d));
      adamw_narrow(h, a.arrays(nullptr, draws.data()), g.data(), static_cast<int64_t>(n));
      const std::vector<float> m = a.moment(false, n), v = a.moment(true, n);
      for (size_t i = 0; i < n; ++i) {
        sum_m[i] += m[i];
        sum_root[i] += moments == Elem::kBf16 ? static_cast<double>(v[i])
                                              : std::sqrt(static_cast<double>(v[i]));
        low[i] = std::min(low[i], static_cast<double>(m[i]));
        high[i] = std::max(high[i], static_cast<double>(m[i]));
        lost += g[i] != 0.0f && v[i] == 0.0f;
      }
    }
    CHECK(lost == 0);
    float largest = 0;
    for (float x : g) largest = std::max(largest, 0.1f * std::fabs(x));
    for (size_t i = 0; i < n; ++i) {
      const double want = 0.1 * static_cast<double>(g[i]);
      // A step of the format there; of FP8 not below that of its smallest normal binade.
      const double binade = std::exp2(std::floor(std::log2(std::fabs(want) + 1e-30)));
      const double step = moments == Elem::kBf16
                              ? binade / 128
                              : std::max(binade / 8, static_cast<double>(largest) * 0x1p-16);
      CHECK(std::fabs(sum_m[i] / kDraws - want) <= step * 2e-3);
      CHECK(high[i] - low[i] <= step * 2.01);
      CHECK(low[i] <= want + step * 1e-3);
      CHECK(high[i] >= want - step * 1e-3);
      if (moments == Elem::kBf16) {
        const double v = 1e-3 * static_cast<double>(g[i]) * static_cast<double>(g[i]);
        CHECK(std::fabs(sum_root[i] / kDraws - v) <= v * 1e-4);
      } else if (i < 64 && std::fabs(g[i]) > 1e-5f) {
        const double root = std::sqrt(1e-3) * std::fabs(static_cast<double>(g[i]));
        CHECK(std::fabs(sum_root[i] / kDraws / root - 1) < 1e-3);
      }
    }
  }
}

TEST_CASE("bf16 masters: small updates are kept on average, where rounding to nearest loses them") {
  const size_t n = 4096;
  AdamW h{};
  h.lr = 1e-5;  // a step of 1e-5 beside 1.0, whose bf16 neighbours are 2^-8 and 2^-7 away
  h.beta1 = h.beta2 = 0.0;
  h.eps = 1e-8;
  h.grad_scale = h.bias1 = h.sqrt_bias2 = 1;
  const std::vector<float> g(n, 1.0f), start(n, 1.0f);
  Narrow a(n, Elem::kBf16, Elem::kF32);
  cast(start.data(), Elem::kF32, a.p.data(), Elem::kBf16, static_cast<int64_t>(n), false);
  for (unsigned t = 0; t < 100; ++t) {
    const std::vector<uint16_t> draws = draws_of(n, 900 + t);
    adamw_narrow(h, a.arrays(draws.data(), nullptr), g.data(), static_cast<int64_t>(n));
  }
  std::vector<float> p(n);
  cast(a.p.data(), Elem::kBf16, p.data(), Elem::kF32, static_cast<int64_t>(n), false);
  double mean = 0;
  for (float x : p) mean += static_cast<double>(x) / n;
  // 100 steps of 1e-5; the deviation of the mean is about 2^-8 * sqrt(0.25 / 4096) = 3e-5.
  CHECK(std::fabs(mean - (1.0 - 1e-3)) < 1.5e-4);
}

TEST_CASE("moments from and to fp32: to nearest, every format") {
  const size_t n = 300;
  const std::vector<float> x = normals(n, 77, 1e-3f);
  for (const Elem elem : {Elem::kF32, Elem::kBf16, Elem::kE4M3}) {
    for (const bool root : {false, true}) {
      std::vector<float> values = x, back(n);
      if (root)
        for (float& v : values) v *= v;
      std::vector<uint8_t> stored(n * 4);
      std::vector<int8_t> exps(3);
      write_moments(values.data(), stored.data(), exps.data(), elem, root, static_cast<int64_t>(n));
      read_moments(stored.data(), exps.data(), elem, root, back.data(), static_cast<int64_t>(n));
      double worst = 0;
      for (size_t i = 0; i < n; ++i) {
        if (std::fabs(x[i]) < 1e-5f) continue;
        const double ratio = root ? std::sqrt(static_cast<double>(back[i]) / values[i])
                                  : static_cast<double>(back[i]) / values[i];
        worst = std::max(worst, std::fabs(ratio - 1));
      }
      CHECK(worst <= (elem == Elem::kF32 ? 0.0 : elem == Elem::kBf16 ? 1.0 / 255 : 1.0 / 15));
    }
  }
}

}  // namespace
}  // namespace loongforge::kernels
