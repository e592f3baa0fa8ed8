// `train --dry_run`: the sizes of a run, the memory it will take, and with --probe its speed,
// measured on its own first steps. Writes nothing. Thread-safety: one thread.
#pragma once

#include "train/session.h"
#include "train/training_data.h"

namespace loongforge::train {

// available: bytes that the run can have (memory_for_run()). Where the forecast is more, the flags
// that would fit are printed and nothing is run. Returns the exit code.
int dry_run(Session& session, const TrainingData& data, uint64_t available);

}  // namespace loongforge::train
