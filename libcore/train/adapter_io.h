// LoRA adapters between Parameters (FP32 masters, B transposed) and PEFT folders.
// Thread-safety: one thread.
#pragma once

#include <filesystem>
#include <string>

#include "base/api.h"
#include "graph/parameters.h"

namespace loongforge::train {

// The adapter that a path names: itself, or the one checkpoint of a run's folder. Error(kNoInput)
// for a folder without one or with several.
LF_API std::filesystem::path adapter_folder(const std::filesystem::path& path);

// What an adapter folder asks of Parameters: its modules, ranks and scales. Throws Error where it
// cannot be read.
LF_API graph::LoraOptions adapter_options(const std::filesystem::path& folder);

// Copies A and B of the folder into the masters and refreshes. REQUIRES params was loaded with
// adapter_options(folder); a module that the model lacks, or of another shape, is an
// Error(kBadData) naming it.
LF_API void load_adapter(const std::filesystem::path& folder, graph::Parameters& params,
                         ThreadPool& pool);

// Writes adapter_config.json and adapter_model.safetensors (F32) into an existing folder.
LF_API void save_adapter(const std::filesystem::path& folder, const std::string& base_model,
                         const graph::Parameters& params);

}  // namespace loongforge::train
