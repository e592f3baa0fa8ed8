// The list of FP8 operations, for `loongforge model-inspect --ops`. Made of the kernel families'
// own descriptions (kernels/op_list.h). Thread-safety: pure functions.
#pragma once

#include <string>

#include "base/api.h"
#include "support/json.h"

namespace loongforge::cli {

// {count, isa_used, native_fp8, operations: [{name, family, direction, format, what, isas,
// usable}]}. isas: compiled in; usable: those of them that this processor runs. An operation, one
// direction of it in one format, counts one.
LF_API support::Json ops_json();
// The same as a table, one operation a line; report: what ops_json() returned.
LF_API std::string ops_text(const support::Json& report);

}  // namespace loongforge::cli
