// Double-double values (hi + lo) carry what one double would lose in log and pow. Products are
// split after Dekker 1971, sums after Knuth; none of it may be contracted to fma
// (-ffp-contract=off).
#include "kernels/math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace loongforge::kernels {
namespace {

struct Two {
  double hi, lo;
};

Two two_sum(double a, double b) noexcept {
  const double s = a + b;
  const double t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

Two split(double a) noexcept {  // into halves of 26 bits; REQUIRES |a| < 2^996
  const double t = 134217729.0 * a;
  const double hi = t - (t - a);
  return {hi, a - hi};
}

Two two_product(double a, double b) noexcept {
  const double p = a * b;
  const Two x = split(a), y = split(b);
  return {p, ((x.hi * y.hi - p) + x.hi * y.lo + x.lo * y.hi) + x.lo * y.lo};
}

constexpr double kLn2Hi = 0x1.62e42fefp-1;  // 33 bits: k * kLn2Hi is exact for |k| < 2^20
constexpr double kLn2Lo = 0x1.473de6af278edp-34;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// 1 / n!, for Taylor series
struct Factorials {
  double inverse[20];
};
constexpr Factorials make_factorials() {
  Factorials f{};
  double product = 1.0;
  for (int n = 0; n < 20; ++n) {
    if (n > 0) product *= n;  // exact up to 18!
    f.inverse[n] = 1.0 / product;
  }
  return f;
}
constexpr Factorials kFactorials = make_factorials();

// e^(x + small), |small| < 2^-40 |x| + 2^-60
double exp_of(double x, double small) noexcept {
  if (x != x) return x;
  if (x > 709.79) return kInfinity;
  if (x < -745.14) return 0.0;
  const double k = std::floor(x * 0x1.71547652b82fep+0 + 0.5);
  const double r = (x - k * kLn2Hi) - k * kLn2Lo + small;
  // e^r = 1 + r + r^2 q(r), |r| <= 0.35: the first term left out is 4e-18.
  double q = kFactorials.inverse[13];
  for (int n = 12; n >= 2; --n) q = q * r + kFactorials.inverse[n];
  return std::ldexp(1.0 + (r + r * r * q), static_cast<int>(k));
}

// log x as hi + lo, for x > 0 finite. x = 2^k m, sqrt(1/2) < m < sqrt(2); with s = (m - 1) / (m +
// 1), log m = 2 (s + s^3/3 + s^5/5 + ...).
Two log_of(double x) noexcept {
  int k = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    k = -54;
  }
  uint64_t u = std::bit_cast<uint64_t>(x);
  k += static_cast<int>(u >> 52) - 1023;
  u = (u & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
  double m = std::bit_cast<double>(u);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++k;
  }
  const double f = m - 1.0;  // exact
  const double d = f + 2.0;
  const double d_lo = f - (d - 2.0);
  const double s = f / d;
  const Two sd = two_product(s, d);
  const double s_lo = (((f - sd.hi) - sd.lo) - s * d_lo) / d;
  const double t = s * s;  // <= 0.0295
  double series = 0.0;
  for (int n = 23; n >= 3; n -= 2) series = series * t + 1.0 / n;
  const double tail = 2.0 * (s * t * series + s_lo);
  const Two sum = two_sum(k * kLn2Hi, 2.0 * s);
  return two_sum(sum.hi, sum.lo + (k * kLn2Lo + tail));
}

struct Reduced {
  double r;      // |r| <= pi/4
  int quadrant;  // x = r + quadrant * pi/2 (mod 2 pi)
};

// pi/2 in four parts after Cody & Waite: the first three have 23 bits, so that their products with
// k < 2^30 are exact.
Reduced reduce(double x) noexcept {
  const double k = std::floor(x * 0x1.45f306dc9c883p-1 + 0.5);
  double r = x - k * 0x1.921fb4p+0;
  r = r - k * 0x1.4442d0p-24;
  r = r - k * 0x1.846988p-48;
  r = r - k * 0x1.8cc51701b839ap-72;
  return {r, static_cast<int>(k - 4.0 * std::floor(k * 0.25))};
}

double sin_series(double r) noexcept {
  const double t = r * r;
  double p = -kFactorials.inverse[19];
  for (int n = 17; n >= 3; n -= 2)
    p = p * t + ((n / 2) % 2 == 0 ? kFactorials.inverse[n] : -kFactorials.inverse[n]);
  return r + r * t * p;
}

double cos_series(double r) noexcept {
  const double t = r * r;
  double p = -kFactorials.inverse[18];
  for (int n = 16; n >= 4; n -= 2)
    p = p * t + ((n / 2) % 2 == 0 ? kFactorials.inverse[n] : -kFactorials.inverse[n]);
  return 1.0 - (0.5 * t - t * t * p);
}

}  // namespace

double det_exp(double x) noexcept { return exp_of(x, 0.0); }

double det_log(double x) noexcept {
  if (!(x > 0.0)) return x == 0.0 ? -kInfinity : kNan;
  if (x == kInfinity) return x;
  const Two y = log_of(x);
  return y.hi + y.lo;
}

double det_pow(double x, double y) noexcept {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (!(x > 0.0) || x == kInfinity || !(std::fabs(y) < 1e300)) return exp_of(y * det_log(x), 0.0);
  const Two l = log_of(x);
  if (!(std::fabs(y * l.hi) < 1000.0)) return y * l.hi > 0.0 ? kInfinity : 0.0;
  const Two p = two_product(y, l.hi);
  return exp_of(p.hi, p.lo + y * l.lo);
}

double det_sin(double x) noexcept {
  if (!(std::fabs(x) < 0x1p30)) return kNan;
  const Reduced a = reduce(x);
  const double y = a.quadrant % 2 == 0 ? sin_series(a.r) : cos_series(a.r);
  return a.quadrant < 2 ? y : -y;
}

double det_cos(double x) noexcept {
  if (!(std::fabs(x) < 0x1p30)) return kNan;
  const Reduced a = reduce(x);
  const double y = a.quadrant % 2 == 0 ? cos_series(a.r) : sin_series(a.r);
  return a.quadrant == 0 || a.quadrant == 3 ? y : -y;
}

}  // namespace loongforge::kernels
