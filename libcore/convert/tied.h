// A head that the configuration ties to the embedding while the source holds both tensors.
// Thread-safety: one thread.
#pragma once

#include <string>

#include "formats/tensor_source.h"
#include "models/registry.h"

namespace loongforge::convert {

// Equal value by value; NaN equals NaN. Reads both, a stripe at a time.
bool same_values(const formats::TensorSource& source, const formats::StoredTensor& a,
                 const formats::StoredTensor& b);

// The alias of the plan whose own tensor differs from the one it is tied to; null: none does.
const models::PlannedAlias* differing_alias(const formats::TensorSource& source,
                                            const models::ModelPlan& plan);

}  // namespace loongforge::convert
