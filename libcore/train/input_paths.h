// What the file system can refuse before any data is read: the model, the output folder, a
// checkpoint, an adapter. Thread-safety: reads the file system only.
#pragma once

#include "train/options.h"

namespace loongforge::train {

// Throws Error(kNoInput / kUsage) that names the path and says what to do.
void check_paths(const TrainOptions& options);

}  // namespace loongforge::train
