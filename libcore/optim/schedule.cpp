#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "base/error.h"
#include "kernels/math.h"

namespace loongforge::optim {
namespace {

constexpr std::pair<std::string_view, ScheduleType> kNames[] = {
    {"cosine", ScheduleType::kCosine},
    {"linear", ScheduleType::kLinear},
    {"constant", ScheduleType::kConstant},
    {"constant_with_warmup", ScheduleType::kConstantWithWarmup}};

}  // namespace

ScheduleType parse_schedule(std::string_view name) {
  std::string known;
  for (const auto& [word, type] : kNames) {
    if (word == name) return type;
    known += known.empty() ? "" : ", ";
    known += word;
  }
  throw_usage("lr_scheduler_type \"" + std::string(name) + "\" is unknown", "known are " + known);
}

std::string_view schedule_name(ScheduleType type) noexcept {
  for (const auto& [word, known] : kNames) {
    if (known == type) return word;
  }
  return "unknown";
}

int64_t resolve_warmup(int64_t total_steps, int64_t warmup_steps, double warmup_ratio) {
  if (warmup_steps < 0)
    throw_usage("warmup_steps is " + std::to_string(warmup_steps), "it must be 0 or more");
  if (!(warmup_ratio >= 0 && warmup_ratio <= 1)) {
    throw_usage("warmup_ratio is " + std::to_string(warmup_ratio), "it must be from 0 to 1");
  }
  if (warmup_steps > 0) return warmup_steps;
  return static_cast<int64_t>(std::ceil(static_cast<double>(total_steps) * warmup_ratio));
}

Schedule::Schedule(ScheduleType type, double learning_rate, int64_t total_steps,
                   int64_t warmup_steps)
    : type_(type),
      learning_rate_(learning_rate),
      total_steps_(total_steps),
      warmup_steps_(warmup_steps) {}

double Schedule::factor(int64_t step) const noexcept {
  if (type_ == ScheduleType::kConstant) return 1.0;
  if (step < warmup_steps_) {
    return static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, warmup_steps_));
  }
  if (type_ == ScheduleType::kConstantWithWarmup) return 1.0;
  auto decay_steps = static_cast<double>(std::max<int64_t>(1, total_steps_ - warmup_steps_));
  if (type_ == ScheduleType::kLinear) {
    return std::max(0.0, static_cast<double>(total_steps_ - step) / decay_steps);
  }
  double progress = static_cast<double>(step - warmup_steps_) / decay_steps;
  return std::max(0.0, 0.5 * (1.0 + kernels::det_cos(std::numbers::pi * progress)));
}

double Schedule::rate(int64_t step) const noexcept { return learning_rate_ * factor(step); }

}  // namespace loongforge::optim
