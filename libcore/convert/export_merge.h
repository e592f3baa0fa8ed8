// Which tensors of a model an adapter is merged into. Thread-safety: pure function.
#pragma once

#include <map>
#include <string>

#include "formats/peft.h"
#include "ir/model.h"
#include "models/registry.h"

namespace loongforge::convert {

// The adapter's module for each LoongIR tensor that takes one, by its name. Throws Error(kBadData)
// naming file and tensor of a module that the model does not have, has with other dimensions, or
// has tied to another tensor. The pointers are the adapter's.
std::map<std::string, const formats::PeftModule*> plan_merge(const formats::PeftAdapter& adapter,
                                                             const models::Family& family,
                                                             const ir::Model& model);

}  // namespace loongforge::convert
