// Row kernels: the formula in double for every mix of element types, gradients against finite
// differences of it, and the same bits on every ISA for odd widths and misaligned rows.
#include "kernels/rows.h"

#include "kernels/kernel_test.h"

namespace loongforge::kernels {
namespace {

using test::Bytes;
using test::close;
using test::float_elems;
using test::TestMatrix;
using test::UseIsa;

const std::vector<int64_t> kWidths = {1, 7, 16, 31, 64, 100, 576};
Mat no_matrix() { return {nullptr, 0, Elem::kF32}; }

std::vector<float> uniform(size_t n, unsigned seed, float low, float high) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> u(low, high);
  std::vector<float> x(n);
  for (float& v : x) v = u(random);
  return x;
}

// ---- rms_norm

double norm_value(const TestMatrix& x, const std::vector<float>& weight, double eps, int64_t i,
                  int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < x.cols(); ++k)
    sum += static_cast<double>(x.get(i, k)) * static_cast<double>(x.get(i, k));
  return static_cast<double>(x.get(i, j)) / std::sqrt(sum / static_cast<double>(x.cols()) + eps) *
         static_cast<double>(weight[static_cast<size_t>(j)]);
}

TEST_CASE("rms_norm_forward: the formula, every element type, every ISA") {
  std::mt19937 random(1);
  for (const int64_t cols : kWidths) {
    const std::vector<float> weight = uniform(static_cast<size_t>(cols), 2, 0.5f, 1.5f);
    for (const Elem xe : float_elems()) {
      for (const Elem ye : float_elems()) {
        TestMatrix x(5, cols, xe, cols + 3);
        x.fill(&random, 2.0f);
        test::check_same_on_every_isa([&] {
          TestMatrix y(5, cols, ye, cols + 1);
          std::vector<float> rstd(5, -1.0f);
          rms_norm_forward(x.in(), weight.data(), 1e-5f, cols, y.out(), rstd.data(), 0, 2);
          rms_norm_forward(x.in(), weight.data(), 1e-5f, cols, y.out(), rstd.data(), 2, 5);
          CHECK(y.surroundings_intact());
          int wrong = 0;
          for (int64_t i = 0; i < 5; ++i)
            for (int64_t j = 0; j < cols; ++j) {
              const double want = norm_value(x, weight, 1e-5, i, j);
              wrong += !close(static_cast<double>(y.get(i, j)), want, ye, std::fabs(want));
            }
          CHECK(wrong == 0);
          Bytes out = y.bytes();
          test::append(&out, rstd);
          return out;
        });
      }
    }
  }
}

TEST_CASE("rms_norm_forward: the sum of squares runs in 16 lanes and one tree, to the bit") {
  const std::vector<float> weight(83, 1.0f);
  std::mt19937 random(9);
  TestMatrix x(1, 83, Elem::kF32);
  x.fill(&random, 3.0f);
  float lane[16] = {};
  for (int j = 0; j < 83; ++j) lane[j % 16] = std::fma(x.get(0, j), x.get(0, j), lane[j % 16]);
  for (int width = 8; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    TestMatrix y(1, 83, Elem::kF32);
    float rstd = 0;
    rms_norm_forward(x.in(), weight.data(), 1e-6f, 83, y.out(), &rstd, 0, 1);
    CHECK(rstd == 1.0f / std::sqrt(lane[0] / 83.0f + 1e-6f));
  }
}

TEST_CASE("rms_norm_backward: finite differences of the forward's formula") {
  const int64_t rows = 3, cols = 21;
  std::mt19937 random(4);
  std::vector<float> weight = uniform(21, 5, 0.5f, 1.5f);
  TestMatrix x(rows, cols, Elem::kF32), dy(rows, cols, Elem::kF32);
  x.fill(&random);
  dy.fill(&random);
  const auto loss = [&](const TestMatrix& at, const std::vector<float>& w) {
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        sum += static_cast<double>(dy.get(i, j)) * norm_value(at, w, 1e-5, i, j);
    return sum;
  };
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    INFO("isa: ", test::isa_label(isa));
    TestMatrix y(rows, cols, Elem::kF32), dx(rows, cols, Elem::kF32);
    std::vector<float> rstd(3), d_weight(21);
    rms_norm_forward(x.in(), weight.data(), 1e-5f, cols, y.out(), rstd.data(), 0, rows);
    rms_norm_backward(dy.in(), x.in(), weight.data(), rstd.data(), cols, no_matrix(), dx.out(),
                      d_weight.data(), 0, rows);
    const float h = 0x1p-7f;
    for (int64_t j = 0; j < cols; ++j) {
      for (int64_t i = 0; i < rows; ++i) {
        TestMatrix up = x, down = x;
        up.set(i, j, x.get(i, j) + h);
        down.set(i, j, x.get(i, j) - h);
        const double step = static_cast<double>(up.get(i, j)) - static_cast<double>(down.get(i, j));
        CHECK(static_cast<double>(dx.get(i, j)) ==
              doctest::Approx((loss(up, weight) - loss(down, weight)) / step).epsilon(1e-3));
      }
      std::vector<float> up = weight, down = weight;
      up[static_cast<size_t>(j)] += h;
      down[static_cast<size_t>(j)] -= h;
      CHECK(static_cast<double>(d_weight[static_cast<size_t>(j)]) ==
            doctest::Approx((loss(x, up) - loss(x, down)) / static_cast<double>(2 * h))
                .epsilon(1e-3));
    }
  }
}

TEST_CASE(
    "rms_norm_backward: residual added, weight blocks of 64 rows, in place, every element type and "
    "ISA") {
  const int64_t rows = 130;
  std::mt19937 random(6);
  for (const int64_t cols : {int64_t{5}, int64_t{48}, int64_t{67}}) {
    const std::vector<float> weight = uniform(static_cast<size_t>(cols), 7, 0.5f, 1.5f);
    for (const Elem ge : float_elems())
      for (const Elem xe : float_elems())
        for (const Elem re : float_elems()) {
          TestMatrix x(rows, cols, xe, cols + 2), dy(rows, cols, ge, cols + 1),
              residual(rows, cols, re, cols + 4);
          x.fill(&random);
          dy.fill(&random);
          residual.fill(&random);
          std::vector<float> rstd(static_cast<size_t>(rows));
          TestMatrix y(rows, cols, Elem::kF32);
          rms_norm_forward(x.in(), weight.data(), 1e-5f, cols, y.out(), rstd.data(), 0, rows);
          test::check_same_on_every_isa([&] {
            TestMatrix dx = residual, plain(rows, cols, Elem::kF32);
            std::vector<float> blocks(static_cast<size_t>(3 * cols), NAN);
            rms_norm_backward(dy.in(), x.in(), weight.data(), rstd.data(), cols, dx.in(), dx.out(),
                              blocks.data(), 0, 64);
            rms_norm_backward(dy.in(), x.in(), weight.data(), rstd.data(), cols, dx.in(), dx.out(),
                              blocks.data(), 64, rows);
            rms_norm_backward(dy.in(), x.in(), weight.data(), rstd.data(), cols, no_matrix(),
                              plain.out(), nullptr, 0, rows);
            CHECK(dx.surroundings_intact());
            int wrong = 0;
            for (int64_t i = 0; i < rows; ++i)
              for (int64_t j = 0; j < cols; ++j) {
                const float sum = residual.get(i, j) + plain.get(i, j);
                wrong += dx.get(i, j) != (re == Elem::kBf16 ? test::bf16_round(sum) : sum);
              }
            for (int64_t b = 0; b < 3; ++b)
              for (int64_t j = 0; j < cols; ++j) {
                double want = 0, size = 0;
                for (int64_t i = b * 64; i < std::min<int64_t>(rows, b * 64 + 64); ++i) {
                  const double t = static_cast<double>(dy.get(i, j)) *
                                   static_cast<double>(x.get(i, j)) *
                                   static_cast<double>(rstd[static_cast<size_t>(i)]);
                  want += t;
                  size += std::fabs(t);
                }
                wrong += !close(static_cast<double>(blocks[static_cast<size_t>(b * cols + j)]),
                                want, Elem::kF32, size, 16);
              }
            CHECK(wrong == 0);
            std::vector<float> total(static_cast<size_t>(cols), 1.0f),
                fresh(static_cast<size_t>(cols), NAN);
            sum_blocks(blocks.data(), 3, cols, total.data(), true, 0, cols);
            sum_blocks(blocks.data(), 3, cols, fresh.data(), false, 0, cols / 2);
            sum_blocks(blocks.data(), 3, cols, fresh.data(), false, cols / 2, cols);
            for (size_t j = 0; j < static_cast<size_t>(cols); ++j) {
              const size_t c = static_cast<size_t>(cols);
              CHECK(total[j] == ((1.0f + blocks[j]) + blocks[c + j]) + blocks[2 * c + j]);
              CHECK(fresh[j] == (blocks[j] + blocks[c + j]) + blocks[2 * c + j]);
            }
            Bytes out = dx.bytes();
            test::append(&out, blocks);
            return out;
          });
        }
  }
}

// ---- swiglu

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST_CASE(
    "swiglu: forward and backward against the formula and its derivative, in place, every ISA") {
  std::mt19937 random(3);
  for (const int64_t cols : kWidths) {
    for (const Elem xe : float_elems()) {
      for (const Elem ye : float_elems()) {
        TestMatrix gate(4, cols, xe, 2 * cols), up(4, cols, xe, cols + 1), d(4, cols, ye, cols + 5);
        gate.fill(&random, 4.0f);
        up.fill(&random);
        d.fill(&random);
        gate.set(0, 0, 90.0f);
        gate.set(1, 0, -89.0f);
        gate.set(2, 0, -200.0f);
        test::check_same_on_every_isa([&] {
          TestMatrix y(4, cols, ye, cols + 3), d_gate(4, cols, ye, cols + 3),
              d_up(4, cols, ye, cols + 2);
          swiglu_forward(gate.in(), up.in(), cols, y.out(), 0, 4);
          swiglu_backward(d.in(), gate.in(), up.in(), cols, d_gate.out(), d_up.out(), 0, 1);
          swiglu_backward(d.in(), gate.in(), up.in(), cols, d_gate.out(), d_up.out(), 1, 4);
          CHECK(y.surroundings_intact());
          CHECK(d_gate.surroundings_intact());
          CHECK(d_up.surroundings_intact());
          int wrong = 0;
          for (int64_t i = 0; i < 4; ++i)
            for (int64_t j = 0; j < cols; ++j) {
              const double g = static_cast<double>(gate.get(i, j)),
                           u = static_cast<double>(up.get(i, j));
              const double o = static_cast<double>(d.get(i, j)), s = sigmoid(g);
              wrong +=
                  !close(static_cast<double>(y.get(i, j)), g * s * u, ye, std::fabs(g * s * u), 12);
              const double slope = s * (1 + g * (1 - s));
              // where the two terms of the slope cancel, their size is what rounds
              wrong += !close(static_cast<double>(d_gate.get(i, j)), o * u * slope, ye,
                              std::fabs(o * u) * (s + std::fabs(g * s * (1 - s))), 16);
              wrong += !close(static_cast<double>(d_up.get(i, j)), o * g * s, ye,
                              std::fabs(o * g * s), 12);
            }
          CHECK(wrong == 0);
          TestMatrix in_place_gate = gate, in_place_up = up;
          swiglu_backward(d.in(), in_place_gate.in(), in_place_up.in(), cols, in_place_gate.out(),
                          in_place_up.out(), 0, 4);
          if (xe == ye) {
            int different = 0;
            for (int64_t i = 0; i < 4; ++i)
              for (int64_t j = 0; j < cols; ++j)
                different += in_place_gate.get(i, j) != d_gate.get(i, j) ||
                             in_place_up.get(i, j) != d_up.get(i, j);
            CHECK(different == 0);
          }
          Bytes out = y.bytes();
          out.insert(out.end(), d_gate.bytes().begin(), d_gate.bytes().end());
          out.insert(out.end(), d_up.bytes().begin(), d_up.bytes().end());
          return out;
        });
      }
    }
  }
}

TEST_CASE("swiglu_backward: finite differences of the forward's formula") {
  TestMatrix gate(1, 20, Elem::kF32), up(1, 20, Elem::kF32), d(1, 20, Elem::kF32);
  std::mt19937 random(12);
  gate.fill(&random, 3.0f);
  up.fill(&random);
  for (int64_t j = 0; j < 20; ++j) d.set(0, j, 1.0f);
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    TestMatrix d_gate(1, 20, Elem::kF32), d_up(1, 20, Elem::kF32);
    swiglu_backward(d.in(), gate.in(), up.in(), 20, d_gate.out(), d_up.out(), 0, 1);
    for (int64_t j = 0; j < 20; ++j) {
      const double g = static_cast<double>(gate.get(0, j)), u = static_cast<double>(up.get(0, j)),
                   h = 1e-5;
      const auto f = [](double a, double b) { return a * sigmoid(a) * b; };
      CHECK(static_cast<double>(d_gate.get(0, j)) ==
            doctest::Approx((f(g + h, u) - f(g - h, u)) / (2 * h)).epsilon(1e-4));
      CHECK(static_cast<double>(d_up.get(0, j)) ==
            doctest::Approx((f(g, u + h) - f(g, u - h)) / (2 * h)).epsilon(1e-4));
    }
  }
}

// ---- rope

TEST_CASE("rope: the rotation of each pair, its inverse, in place, every element type and ISA") {
  std::mt19937 random(8);
  for (const int64_t head_dim : {int64_t{2}, int64_t{16}, int64_t{24}, int64_t{64}, int64_t{128}}) {
    const int64_t half = head_dim / 2, heads = 3, rows = 5, cols = heads * head_dim;
    std::vector<float> cos_table(static_cast<size_t>(10 * half)), sin_table(cos_table.size());
    const auto angle = [&](int64_t p, int64_t j) {
      return static_cast<double>(p) *
             std::pow(10000.0, -static_cast<double>(j) / static_cast<double>(half));
    };
    for (int64_t p = 0; p < 10; ++p)
      for (int64_t j = 0; j < half; ++j) {
        cos_table[static_cast<size_t>(p * half + j)] = static_cast<float>(std::cos(angle(p, j)));
        sin_table[static_cast<size_t>(p * half + j)] = static_cast<float>(std::sin(angle(p, j)));
      }
    const std::vector<int32_t> positions = {0, 9, 4, 4, 1};
    for (const Elem xe : float_elems())
      for (const Elem ye : float_elems()) {
        TestMatrix x(rows, cols, xe, cols + 7);
        x.fill(&random);
        test::check_same_on_every_isa([&] {
          TestMatrix y(rows, cols, ye, cols + 2), back(rows, cols, Elem::kF32), in_place = x;
          rope(x.in(), y.out(), heads, head_dim, positions.data(), cos_table.data(),
               sin_table.data(), false, 0, rows);
          rope(in_place.in(), in_place.out(), heads, head_dim, positions.data(), cos_table.data(),
               sin_table.data(), false, 0, 3);
          rope(in_place.in(), in_place.out(), heads, head_dim, positions.data(), cos_table.data(),
               sin_table.data(), false, 3, rows);
          rope(y.in(), back.out(), heads, head_dim, positions.data(), cos_table.data(),
               sin_table.data(), true, 0, rows);
          CHECK(y.surroundings_intact());
          int wrong = 0;
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t h = 0; h < heads; ++h)
              for (int64_t j = 0; j < half; ++j) {
                const double t = angle(positions[static_cast<size_t>(i)], j);
                const int64_t a = h * head_dim + j, b = a + half;
                const double u = static_cast<double>(x.get(i, a)),
                             v = static_cast<double>(x.get(i, b));
                const double size = std::fabs(u) + std::fabs(v);
                wrong += !close(static_cast<double>(y.get(i, a)), u * std::cos(t) - v * std::sin(t),
                                ye, size);
                wrong += !close(static_cast<double>(y.get(i, b)), v * std::cos(t) + u * std::sin(t),
                                ye, size);
                const double loss = ye == Elem::kBf16 ? 0x1p-7 : 0x1p-21;
                wrong += std::fabs(static_cast<double>(back.get(i, a)) - u) > loss * size;
                if (xe == ye)
                  wrong += in_place.get(i, a) != y.get(i, a) || in_place.get(i, b) != y.get(i, b);
              }
          CHECK(wrong == 0);
          return y.bytes();
        });
      }
  }
}

// ---- add, apply_mask

TEST_CASE("add: sum, copy and cast of every mix of element types") {
  std::mt19937 random(13);
  for (const int64_t cols : kWidths)
    for (const Elem ae : float_elems())
      for (const Elem be : float_elems())
        for (const Elem ye : float_elems()) {
          TestMatrix a(3, cols, ae, cols + 1), b(3, cols, be, cols + 2);
          a.fill(&random);
          b.fill(&random);
          test::check_same_on_every_isa([&] {
            TestMatrix y(3, cols, ye, cols + 3), copy(3, cols, ye);
            add(a.in(), b.in(), cols, y.out(), 0, 3);
            add(a.in(), no_matrix(), cols, copy.out(), 0, 3);
            CHECK(y.surroundings_intact());
            int wrong = 0;
            for (int64_t i = 0; i < 3; ++i)
              for (int64_t j = 0; j < cols; ++j) {
                const auto rounded = [&](float v) {
                  return ye == Elem::kBf16 ? test::bf16_round(v) : v;
                };
                wrong += y.get(i, j) != rounded(a.get(i, j) + b.get(i, j));
                wrong += copy.get(i, j) != rounded(a.get(i, j));
              }
            CHECK(wrong == 0);
            return y.bytes();
          });
        }
}

TEST_CASE("apply_mask: bit j % 8 of byte j / 8; the mask is not read past its last byte") {
  std::mt19937 random(14);
  for (const int64_t cols : kWidths)
    for (const Elem xe : float_elems())
      for (const Elem ye : float_elems()) {
        TestMatrix x(3, cols, xe, cols + 1);
        x.fill(&random);
        const int64_t mask_ld = (cols + 7) / 8;
        std::vector<uint8_t> mask(static_cast<size_t>(3 * mask_ld));
        for (uint8_t& m : mask) m = static_cast<uint8_t>(random());
        test::check_same_on_every_isa([&] {
          TestMatrix y(3, cols, ye, cols + 3);
          apply_mask(x.in(), mask.data(), mask_ld, 1.25f, cols, y.out(), 0, 3);
          CHECK(y.surroundings_intact());
          int wrong = 0;
          for (int64_t i = 0; i < 3; ++i)
            for (int64_t j = 0; j < cols; ++j) {
              const bool kept =
                  (mask[static_cast<size_t>(i * mask_ld + j / 8)] >> (j % 8) & 1) != 0;
              const float want = kept ? x.get(i, j) * 1.25f : 0.0f;
              wrong += y.get(i, j) != (ye == Elem::kBf16 ? test::bf16_round(want) : want);
            }
          CHECK(wrong == 0);
          return y.bytes();
        });
      }
}

}  // namespace
}  // namespace loongforge::kernels
