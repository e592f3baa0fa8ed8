#include "quant/statistics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace loongforge;
using kernels::Elem;

namespace {

quant::TensorStats filled() {
  quant::TensorStats s;
  s.elements = 1000;
  s.counts.overflow = 5;
  s.counts.zero = 20;
  s.counts.amax = 3.0f;
  s.counts.peak = 7.0f;
  s.error.error_squares = 4.0;
  s.error.value_squares = 400.0;
  s.error.relative_squares = 9.0;
  s.error.values = 100;
  return s;
}

}  // namespace

TEST_CASE("shares, headroom and errors by their definitions") {
  quant::TensorStats s = filled();
  CHECK(s.overflow_share() == 0.005);
  CHECK(s.underflow_share() == 0.02);
  CHECK(s.headroom() == 1.0);  // 14 / 7
  CHECK(s.relative_rms() == 0.1);
  CHECK(s.quant_error_std() == 0.3);
  s.elem = Elem::kE5M2;
  s.counts.peak = 2 * 57344.0f;
  CHECK(s.headroom() == -1.0);
  const quant::TensorStats empty;
  CHECK(empty.overflow_share() == 0.0);
  CHECK(std::isnan(empty.headroom()));
  CHECK(empty.relative_rms() == 0.0);
  CHECK(empty.quant_error_std() == 0.0);
}

TEST_CASE("sums: counts add, peaks are the larger, gradients alone give the clip signal") {
  quant::StatsMap sum, other;
  sum["a.input"] = filled();
  other["a.input"] = filled();
  other["a.input"].counts.peak = 9.0f;
  other["a.grad"] = filled();
  other["a.grad"].gradient = true;
  quant::add_stats(&sum, other);
  CHECK(sum["a.input"].elements == 2000);
  CHECK(sum["a.input"].counts.overflow == 10);
  CHECK(sum["a.input"].counts.peak == 9.0f);
  CHECK(sum["a.input"].error.values == 200);
  CHECK(sum["a.grad"].gradient);
  CHECK(quant::saturated_gradients(sum) == 5);
  const std::string table = quant::stats_table(sum);
  CHECK(table.find("a.input  E4M3     5.00e-03   2.00e-02") != std::string::npos);
  CHECK(std::count(table.begin(), table.end(), '\n') == 3);
}
