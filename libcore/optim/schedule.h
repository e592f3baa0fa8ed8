// Learning rate schedules, as transformers' get_scheduler computes them: the rate of an optimizer
// step depends on its number, the number of all steps and the warmup. Bit-equal on every machine.
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/api.h"

namespace loongforge::optim {

enum class ScheduleType : uint8_t { kCosine, kLinear, kConstant, kConstantWithWarmup };

// The word of --lr_scheduler_type; Error(kUsage) that lists the known ones.
LF_API ScheduleType parse_schedule(std::string_view name);
LF_API std::string_view schedule_name(ScheduleType type) noexcept;

// warmup_steps where it is > 0, else ceil(total_steps * warmup_ratio). Error(kUsage) for negative
// steps, or a ratio outside [0, 1].
LF_API int64_t resolve_warmup(int64_t total_steps, int64_t warmup_steps, double warmup_ratio);

class LF_API Schedule {
 public:
  // REQUIRES total_steps >= 0, warmup_steps >= 0. kConstant ignores the warmup.
  Schedule(ScheduleType type, double learning_rate, int64_t total_steps, int64_t warmup_steps);

  // The rate that optimizer step number `step` uses, from 0; with a warmup the first is 0, as in
  // transformers.
  double rate(int64_t step) const noexcept;
  // rate / learning_rate.
  double factor(int64_t step) const noexcept;

 private:
  ScheduleType type_;
  double learning_rate_;
  int64_t total_steps_, warmup_steps_;
};

}  // namespace loongforge::optim
