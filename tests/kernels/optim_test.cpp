// Optimizer kernels against double formulas, and bit for bit between ISAs.
#include "kernels/optim.h"

#include "kernels/kernel_test.h"

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

}  // namespace
}  // namespace loongforge::kernels
