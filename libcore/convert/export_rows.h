// Rows of a LoongIR tensor as a RowSource. Thread-safety: as ir::Reader.
#pragma once

#include "convert/merge.h"
#include "convert/stripes.h"
#include "ir/reader.h"

namespace loongforge::convert {

// entry: a stored tensor (no alias). delta, when not null, is added to the rows; then only fp32 can
// be had. Reader and delta outlive the result.
RowSource rows_of(const ir::Reader& reader, const ir::TensorEntry& entry, const LoraDelta* delta);

}  // namespace loongforge::convert
