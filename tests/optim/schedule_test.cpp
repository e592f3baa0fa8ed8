#include "optim/schedule.h"

#include <doctest/doctest.h>

#include <cmath>

#include "support/expect_error.h"

using namespace loongforge;
using optim::Schedule;
using optim::ScheduleType;

TEST_CASE("schedule: the learning rates of the golden trajectories") {
  // trajectory.json of the reference runs (PyTorch): rate 2e-3, 3 warmup steps, then a cosine to
  // step 11; its step k, from 1, took the schedule's value at k.
  constexpr double kRates[] = {
      0.0006666666666666666,  0.0013333333333333333, 0.002, 0.0019238795325112869,
      0.0017071067811865474,  0.00138268343236509,   0.001, 0.0006173165676349102,
      0.00029289321881345256, 7.612046748871326e-05};
  Schedule schedule(ScheduleType::kCosine, 2e-3, 11, 3);
  for (int k = 1; k <= 10; ++k) {
    CAPTURE(k);
    CHECK(std::abs(schedule.rate(k) - kRates[k - 1]) <= 1e-15 * 2e-3 + 1e-14 * kRates[k - 1]);
  }
  CHECK(schedule.rate(0) == 0);
  CHECK(schedule.rate(11) == 0);
}

TEST_CASE("schedule: cosine from first to last step") {
  Schedule schedule(ScheduleType::kCosine, 1.0, 1000, 30);
  const double pi = std::acos(-1.0);
  for (int64_t step = 0; step <= 1000; ++step) {
    double expected = step < 30 ? static_cast<double>(step) / 30.0
                                : 0.5 * (1 + std::cos(pi * static_cast<double>(step - 30) / 970.0));
    REQUIRE(std::abs(schedule.factor(step) - expected) < 1e-14);
  }
  CHECK(schedule.factor(30) == 1.0);
  // As transformers: the cosine goes on beyond the last step, it does not stay at 0.
  CHECK(std::abs(schedule.factor(1000 + 970) - 1.0) < 1e-14);
}

TEST_CASE("schedule: linear, constant, constant with warmup") {
  Schedule linear(ScheduleType::kLinear, 2.0, 10, 4);
  const double expected[] = {0,           0.5,         1.0,         1.5,     2.0, 2.0 * 5 / 6,
                             2.0 * 4 / 6, 2.0 * 3 / 6, 2.0 * 2 / 6, 2.0 / 6, 0,   0};
  for (int step = 0; step < 12; ++step)
    CHECK(linear.rate(step) == doctest::Approx(expected[step]).epsilon(1e-15));
  Schedule constant(ScheduleType::kConstant, 3.0, 10, 4);
  CHECK(constant.rate(0) == 3.0);
  CHECK(constant.rate(99) == 3.0);
  Schedule warm(ScheduleType::kConstantWithWarmup, 3.0, 10, 4);
  CHECK(warm.rate(0) == 0.0);
  CHECK(warm.rate(1) == 0.75);
  CHECK(warm.rate(4) == 3.0);
  CHECK(warm.rate(99) == 3.0);
}

TEST_CASE("schedule: the edges that divide by nothing") {
  CHECK(Schedule(ScheduleType::kCosine, 1.0, 0, 0).rate(0) == 1.0);
  CHECK(Schedule(ScheduleType::kLinear, 1.0, 5, 5).rate(4) == 0.8);
  CHECK(Schedule(ScheduleType::kLinear, 1.0, 5, 5).rate(5) == 0.0);
  CHECK(Schedule(ScheduleType::kCosine, 1.0, 3, 10).rate(2) == 0.2);
  CHECK(Schedule(ScheduleType::kCosine, 1.0, 10, 0).rate(0) == 1.0);
}

TEST_CASE("schedule: warmup from steps or ratio") {
  CHECK(optim::resolve_warmup(100, 0, 0.03) == 3);
  CHECK(optim::resolve_warmup(101, 0, 0.03) == 4);
  CHECK(optim::resolve_warmup(10, 0, 0.03) == 1);
  CHECK(optim::resolve_warmup(10, 7, 0.03) == 7);
  CHECK(optim::resolve_warmup(10, 0, 0) == 0);
  CHECK(optim::resolve_warmup(10, 0, 1) == 10);
  LF_CHECK_ERROR(optim::resolve_warmup(10, -1, 0), ErrorCode::kUsage, "warmup_steps");
  LF_CHECK_ERROR(optim::resolve_warmup(10, 0, 1.5), ErrorCode::kUsage, "warmup_ratio");
  LF_CHECK_ERROR(optim::resolve_warmup(10, 0, std::nan("")), ErrorCode::kUsage, "warmup_ratio");
}

TEST_CASE("schedule: names") {
  for (const char* name : {"cosine", "linear", "constant", "constant_with_warmup"}) {
    CHECK(optim::schedule_name(optim::parse_schedule(name)) == name);
  }
  LF_CHECK_ERROR(optim::parse_schedule("cosin"), ErrorCode::kUsage, "\"cosin\"");
  LF_CHECK_ERROR(optim::parse_schedule("polynomial"), ErrorCode::kUsage, "constant_with_warmup");
}
