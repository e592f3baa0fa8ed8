// The state of delayed scaling in a checkpoint: scaling.safetensors, one "<tensor>.amax" (F32, the
// oldest first) and, with adaptive bias, one "<tensor>.binades" (I64) each. Thread-safety: pure
// functions.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "quant/scaling_state.h"

namespace loongforge::train {

inline constexpr const char* kScalingFile = "scaling.safetensors";

// Nothing where there is no state.
void write_scaling(const std::filesystem::path& folder, const quant::ScalingState& state);
// Empty where the checkpoint has none; Error(kBadData) for one that is not as written.
std::map<std::string, quant::ScalingState::Tensor> read_scaling(
    const std::filesystem::path& folder);

}  // namespace loongforge::train
