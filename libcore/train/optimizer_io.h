// The optimizer in a checkpoint: optimizer.safetensors, moments as the optimizer holds them (fp32,
// bf16, or FP8 codes with their exponents). A run with another --moments reads them as numbers and
// rounds once to its own. Thread-safety: pure functions.
#pragma once

#include <filesystem>

#include "optim/adamw.h"

namespace loongforge::train {

inline constexpr const char* kOptimizerFile = "optimizer.safetensors";

void write_optimizer(const std::filesystem::path& folder, optim::AdamW& optimizer);
// Throws Error(kBadData) where the file is not that of these parameters; max_steps: steps that it
// may have made.
void read_optimizer(const std::filesystem::path& folder, int64_t max_steps,
                    optim::AdamW& optimizer);

}  // namespace loongforge::train
