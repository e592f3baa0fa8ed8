// The vector exp on its scalar form, over the whole range; the other ISAs equal it through the
// kernels that use it.
#include "kernels/generic/math_vec.h"

#include "kernels/kernel_test.h"
#include "kernels/scalar/vec.h"

namespace loongforge::kernels {
namespace {

using scalar::V;

float exp_one(float x) { return generic::exp(V::set1(x)).f[0]; }

TEST_CASE(
    "generic::exp: within one unit in the last place, flushed below 2^-126, infinite above the "
    "largest float") {
  double worst = 0;
  int wrong = 0;
  for (uint64_t u = 0; u < (uint64_t{1} << 32); u += 16 * 251) {
    V x;
    for (int i = 0; i < 16; ++i)
      x.set_bits(i, static_cast<uint32_t>(u) + static_cast<uint32_t>(i) * 251u);
    const V y = generic::exp(x);
    for (int i = 0; i < 16; ++i) {
      if (std::isnan(x.f[i])) {
        wrong += !std::isnan(y.f[i]);
        continue;
      }
      const double want = std::exp(static_cast<double>(x.f[i]));
      if (want < 0x1p-126) {
        wrong += y.f[i] != 0.0f;
      } else if (want > static_cast<double>(std::numeric_limits<float>::max())) {
        wrong += y.f[i] != HUGE_VALF;
      } else {
        worst = std::max(worst, std::fabs(static_cast<double>(y.f[i]) - want) /
                                    std::ldexp(1.0, std::ilogb(want) - 23));
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(worst < 1.0);
}

TEST_CASE("generic::exp: exact points and edges") {
  CHECK(exp_one(0.0f) == 1.0f);
  CHECK(exp_one(-0.0f) == 1.0f);
  CHECK(exp_one(-HUGE_VALF) == 0.0f);
  CHECK(exp_one(HUGE_VALF) == HUGE_VALF);
  CHECK(std::isnan(exp_one(NAN)));
  CHECK(exp_one(-87.336540f) > 0.0f);
  CHECK(exp_one(-87.336550f) == 0.0f);
  CHECK(std::isfinite(exp_one(88.722831f)));
  CHECK(exp_one(88.722840f) == HUGE_VALF);
}

TEST_CASE("generic::sigmoid: against double, and its limits") {
  double worst = 0;
  for (float x = -80.0f; x < 80.0f; x += 0.013f) {
    const double want = 1 / (1 + std::exp(-static_cast<double>(x)));
    worst = std::max(
        worst, std::fabs(static_cast<double>(generic::sigmoid(V::set1(x)).f[0]) - want) / want);
  }
  CHECK(worst < 3e-7);
  CHECK(generic::sigmoid(V::set1(-200.0f)).f[0] == 0.0f);
  CHECK(generic::sigmoid(V::set1(200.0f)).f[0] == 1.0f);
}

}  // namespace
}  // namespace loongforge::kernels
