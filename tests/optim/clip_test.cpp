#include "optim/clip.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/isa.h"

using namespace loongforge;
using optim::GradientNorm;
using optim::ParameterView;

namespace {

std::vector<ParameterView> views() {
  return {{"a", 300, 17, 0, true},
          {"b", 1, 33, 5120, false},
          {"c", 128, 5, 5200, true},
          {"d", 129, 64, 6000, true}};
}

std::vector<float> gradients() {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0f, 0.7f);
  std::vector<float> out(20000);
  for (float& x : out) x = normal(random);
  return out;
}

uint64_t bits(double x) {
  uint64_t u;
  std::memcpy(&u, &x, 8);
  return u;
}

}  // namespace

TEST_CASE("clip: the norm is that of all views and of nothing between them") {
  auto g = gradients();
  long double sum = 0;
  for (const ParameterView& view : views()) {
    for (int64_t i = 0; i < view.size(); ++i) {
      long double x = g[static_cast<size_t>(view.offset + i)];
      sum += x * x;
    }
  }
  ThreadPool pool(2);
  GradientNorm norm = optim::gradient_norm(views(), g.data(), 0.125, pool);
  CHECK(norm.finite);
  CHECK(norm.norm == doctest::Approx(static_cast<double>(std::sqrt(sum)) * 0.125).epsilon(1e-14));
  g[5119] = std::numeric_limits<float>::infinity();  // in the gap
  CHECK(optim::gradient_norm(views(), g.data(), 0.125, pool).norm == norm.norm);
  CHECK(optim::gradient_norm({}, g.data(), 1, pool).norm == 0);
}

TEST_CASE("clip: the same bits for every thread count and ISA") {
  auto g = gradients();
  kernels::Isa before = kernels::active_isa();
  ThreadPool one(1);
  REQUIRE(kernels::set_active_isa(kernels::Isa::kScalar));
  uint64_t expected = bits(optim::gradient_norm(views(), g.data(), 1.0 / 3, one).norm);
  for (kernels::Isa isa : kernels::testable_isas()) {
    REQUIRE(kernels::set_active_isa(isa));
    CAPTURE(kernels::isa_name(isa));
    for (int threads : {1, 2, 3, 7}) {
      ThreadPool pool(threads);
      CHECK(bits(optim::gradient_norm(views(), g.data(), 1.0 / 3, pool).norm) == expected);
    }
  }
  kernels::set_active_isa(before);
}

TEST_CASE("clip: parts of the blocks put together are the norm") {
  auto g = gradients();
  ThreadPool pool(1);
  double total = 0;
  for (const ParameterView& view : views()) {
    int64_t blocks = optim::norm_blocks(view);
    CHECK(blocks == (view.rows + 127) / 128);
    std::vector<double> sums(static_cast<size_t>(blocks));
    for (int64_t i = blocks - 1; i >= 0; --i) {
      optim::block_square_sums(view, g.data(), i, {&sums[static_cast<size_t>(i)], 1});
    }
    for (double sum : sums) total += sum;
  }
  CHECK(bits(std::sqrt(total)) == bits(optim::gradient_norm(views(), g.data(), 1, pool).norm));
}

TEST_CASE("clip: one bad gradient anywhere is seen, large ones are not taken for bad") {
  ThreadPool pool(2);
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    for (size_t at : {size_t{0}, size_t{5099}, size_t{5120}, size_t{5152}, size_t{14255}}) {
      auto g = gradients();
      g[at] = bad;
      CHECK_FALSE(optim::gradient_norm(views(), g.data(), 1, pool).finite);
    }
  }
  std::vector<float> huge(20000, std::numeric_limits<float>::max());
  CHECK(optim::gradient_norm(views(), huge.data(), 1e-30, pool).finite);
}

TEST_CASE("clip: the factor is torch's") {
  CHECK(optim::clip_factor(0.5, 1.0) == 1.0);
  CHECK(optim::clip_factor(0.0, 1.0) == 1.0);
  CHECK(optim::clip_factor(1.0, 1.0) == 1.0 / (1.0 + 1e-6));
  CHECK(optim::clip_factor(4.0, 1.0) == 1.0 / (4.0 + 1e-6));
  CHECK(optim::clip_factor(4.0, 0.5) == 0.5 / (4.0 + 1e-6));
  CHECK(optim::clip_factor(4.0, 0.0) == 1.0);
}
