// What decides the bits of a run, as a checkpoint keeps it: a run is continued with the same, or
// not at all. Thread-safety: pure functions.
#pragma once

#include "ir/model.h"
#include "support/json.h"
#include "train/options.h"
#include "train/training_data.h"
#include "train/training_run.h"

namespace loongforge::train {

// Holds no path: model, dataset and adapter stand in it by their checksums.
support::Json run_identity(const TrainOptions& options, const RunShape& shape,
                           const TrainingData& data, const ir::Model& model);

// Throws Error(kUsage) that names the option and both values where they differ. What an older
// version did not keep is not compared, and an adapter only where one is named now: the checkpoint
// holds its own.
void check_identity(const support::Json& saved, const support::Json& now);

}  // namespace loongforge::train
