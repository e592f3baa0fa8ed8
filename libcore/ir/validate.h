// Structural validation of a LoongIR model: everything that can be said without reading weights.
// Both sides use it: the reader before it trusts a file, the writer before it lets one appear.
// Thread-safety: pure functions; validate_files() looks at the file system.
#pragma once

#include <filesystem>
#include <string>

#include "ir/model.h"

namespace loongforge::ir {

// Names, topological order, arity, parameters and attributes of every node; parameter shapes where
// the op fixes them. where: the file's name, for the Error(kBadData) that names node or tensor.
LF_API void validate_graph(const Model& model, const std::string& where);
// Shapes, sizes, alignment, overlaps, companions and aliases of the tensor table, and the model's
// own fields. Integer overflow is checked: after it, TensorEntry::rows(), cols(), row_bytes() and
// row_stride() may be used.
LF_API void validate_table(const Model& model, const std::string& where);
// Headers and sizes of the weight files against the table. REQUIRES validate_table().
LF_API void validate_files(const Model& model, const std::filesystem::path& folder);

}  // namespace loongforge::ir
