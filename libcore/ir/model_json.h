// loongir_model.json as text and back. Reading checks every key and type, and the format version;
// what the numbers say is checked by ir/validate.h. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "ir/model.h"

namespace loongforge::ir {

// One line per node and per tensor, so that the file reads and diffs well.
LF_API std::string model_to_text(const Model& model);
// where: the file's name, for errors. Throws Error(kBadData) that names the key.
LF_API Model model_from_text(std::string_view text, const std::string& where);

}  // namespace loongforge::ir
