// Whether a graph can be run: known ops, inputs that exist, shapes that fit, parameters that the model holds. What the file
// format itself demands (offsets, topological order) ir/ has checked already.
// Thread-safety: pure function.
#pragma once

#include <string>

#include "base/api.h"
#include "ir/model.h"

namespace loongforge::graph {

// Throws Error(kBadData) naming `where` and the node. Returns the number of columns of the logits (the vocabulary).
LF_API int64_t validate(const ir::Model& model, const std::string& where);

}  // namespace loongforge::graph
