// Whether two LoongIR models compute the same: a checksum of the description, which holds a CRC32C
// of every weight, so that no weight is read. Folder, label, device and the places in files do not
// count. Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "base/api.h"
#include "ir/model.h"

namespace loongforge::ir {

LF_API uint32_t identity_with_weights(const Model& model);
// Of the graph and the shapes of its weights: what stays when they are trained or stored otherwise.
LF_API uint32_t identity_of_shape(const Model& model);

}  // namespace loongforge::ir
