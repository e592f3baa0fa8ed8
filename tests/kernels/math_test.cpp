// Against the long double functions of libm (64-bit mantissa on x86-64, 112-bit on loongarch64).
#include "kernels/math.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

namespace loongforge::kernels {
namespace {

double relative(double got, long double want) {
  return want == 0.0L
             ? std::fabs(got)
             : static_cast<double>(std::fabs((static_cast<long double>(got) - want) / want));
}

TEST_CASE("det_exp: relative error, limits") {
  double worst = 0;
  for (double x = -708.0; x < 709.5; x += 0.0137)
    worst = std::max(worst, relative(det_exp(x), std::exp(static_cast<long double>(x))));
  for (double x = -1.0; x < 1.0; x += 1.7e-5)
    worst = std::max(worst, relative(det_exp(x), std::exp(static_cast<long double>(x))));
  CHECK(worst < 1e-15);
  CHECK(det_exp(0.0) == 1.0);
  CHECK(det_exp(-0.0) == 1.0);
  CHECK(det_exp(710.0) == HUGE_VAL);
  CHECK(det_exp(HUGE_VAL) == HUGE_VAL);
  CHECK(det_exp(-746.0) == 0.0);
  CHECK(det_exp(-HUGE_VAL) == 0.0);
  CHECK(std::isnan(det_exp(NAN)));
  CHECK(det_exp(-745.0) == std::exp(-745.0));  // subnormal
}

TEST_CASE("det_log: relative error near 1, everywhere, subnormals") {
  double worst = 0;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-1022.0, 1023.0), near_one(0.5, 2.0),
      tiny(-1e-3, 1e-3);
  for (int i = 0; i < 50000; ++i) {
    for (const double x : {std::exp2(exponent(random)), near_one(random), 1.0 + tiny(random)})
      worst = std::max(worst, relative(det_log(x), std::log(static_cast<long double>(x))));
  }
  worst = std::max(worst, relative(det_log(0x1p-1074), std::log(0x1p-1074L)));
  worst = std::max(worst, relative(det_log(0x1.5p-1040), std::log(0x1.5p-1040L)));
  CHECK(worst < 1e-15);
  CHECK(det_log(1.0) == 0.0);
  CHECK(det_log(0.0) == -HUGE_VAL);
  CHECK(det_log(HUGE_VAL) == HUGE_VAL);
  CHECK(std::isnan(det_log(-1.0)));
  CHECK(std::isnan(det_log(NAN)));
}

TEST_CASE("det_pow: relative error where the exponent is large too") {
  double worst = 0;
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> base(-30.0, 30.0), power(-20.0, 20.0);
  for (int i = 0; i < 50000; ++i) {
    const double x = std::exp2(base(random)), y = power(random);
    worst = std::max(worst, relative(det_pow(x, y), std::pow(static_cast<long double>(x),
                                                             static_cast<long double>(y))));
  }
  // Bias corrections and rotary frequencies, as they are used.
  for (int t = 1; t < 600000; t = t * 3 + 1) {
    worst = std::max(worst, relative(det_pow(0.999, t), std::pow(static_cast<long double>(0.999),
                                                                 static_cast<long double>(t))));
    worst = std::max(worst, relative(det_pow(0.9, t > 5000 ? 5000 : t),
                                     std::pow(static_cast<long double>(0.9),
                                              static_cast<long double>(t > 5000 ? 5000 : t))));
  }
  for (int i = 0; i < 64; ++i) {
    const double y = -2.0 * i / 128;
    worst = std::max(
        worst, relative(det_pow(500000.0, y), std::pow(500000.0L, static_cast<long double>(y))));
  }
  CHECK(worst < 2e-15);
  CHECK(det_pow(2.0, 10.0) == 1024.0);
  CHECK(det_pow(10.0, 0.0) == 1.0);
  CHECK(det_pow(2.0, 5000.0) == HUGE_VAL);
  CHECK(det_pow(2.0, -5000.0) == 0.0);
  CHECK(det_pow(1.0, 1e308) == 1.0);
  CHECK(std::isnan(det_pow(NAN, 2.0)));
}

TEST_CASE(
    "det_sin, det_cos: absolute error up to 2^30, also where the argument is near a multiple of "
    "pi/2") {
  double worst = 0;
  const auto probe = [&](double x) {
    const long double wide = x;
    worst = std::max(worst, static_cast<double>(std::fabs(det_sin(x) - std::sin(wide))));
    worst = std::max(worst, static_cast<double>(std::fabs(det_cos(x) - std::cos(wide))));
  };
  for (double x = -20.0; x < 20.0; x += 0.00113) probe(x);
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> size(0.0, 30.0);
  for (int i = 0; i < 100000; ++i)
    probe(std::exp2(size(random)) * (i % 2 == 0 ? 1 : -1) * 0.999999);
  for (int k = 1; k < 683000000; k = k * 2 + 1) {
    const double x = static_cast<double>(k * 1.57079632679489661923132169163975144L);
    for (const double near : {x, std::nextafter(x, 0.0), std::nextafter(x, 1e30)}) probe(near);
  }
  CHECK(worst < 1e-15);
  CHECK(det_sin(0.0) == 0.0);
  CHECK(det_cos(0.0) == 1.0);
  CHECK(std::isnan(det_sin(NAN)));
  CHECK(std::isnan(det_cos(HUGE_VAL)));
}

}  // namespace
}  // namespace loongforge::kernels
