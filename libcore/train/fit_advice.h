// Whether a run fits into the memory there is, and the flags with which it would: each computed by
// the forecast of the run that has them, none guessed. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/training_run.h"

namespace loongforge::train {

struct FittingFlags {
  std::string flags;  // "--per_device_train_batch_size 2 --gradient_accumulation_steps 32"
  MemoryForecast forecast;
  bool fits = false;
};

// What a forecast is held against: memory that is free for this process, and what it has already.
uint64_t memory_for_run();

// The flags that bring the forecast of this run to at most `bytes`: single changes first; where
// none is enough, changes added up until they are. Where nothing is enough the last entry is the
// smallest run found, with fits false. process: the part of the forecast that no flag changes.
std::vector<FittingFlags> flags_that_fit(Session& session, const TrainingData& data,
                                         uint64_t process, uint64_t bytes);

}  // namespace loongforge::train
