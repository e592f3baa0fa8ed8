// The chart of a part: the mean over the seeds of the loss, and of what it differs from bf16's.
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "bench/precision/table.h"

namespace loongforge::bench {

std::string draw_curves(const Part& part, const Records& records);

}  // namespace loongforge::bench
