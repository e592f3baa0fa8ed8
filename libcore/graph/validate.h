// Whether a graph can be run: known ops, inputs that exist, shapes that fit, parameters that the
// model holds. What the file format itself demands (offsets, topological order) ir/ has checked
// already. Thread-safety: pure function.
#pragma once

#include <string>

#include "base/api.h"
#include "ir/model.h"

namespace loongforge::graph {

// Throws Error(kBadData) naming `where` and the node. Returns the number of columns of the logits
// (the vocabulary).
LF_API int64_t validate(const ir::Model& model, const std::string& where);
// Whether a document's results depend on how long the others of its batch are (rope type dynamic):
// not to be packed.
LF_API bool depends_on_longest_document(const ir::Graph& graph);

}  // namespace loongforge::graph
