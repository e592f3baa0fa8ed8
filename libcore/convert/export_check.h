// Whether a LoongIR model's tensors are those that its config.json describes: an export carries
// that file, so it must be true. Thread-safety: pure function.
#pragma once

#include <filesystem>

#include "ir/model.h"
#include "models/registry.h"

namespace loongforge::convert {

// Throws Error(kBadData) naming loongir_model.json and the tensor or key that does not fit.
void check_config(const models::Family& family, const ir::Model& model,
                  const std::filesystem::path& folder);

}  // namespace loongforge::convert
