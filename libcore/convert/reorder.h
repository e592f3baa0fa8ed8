// Rows of q and k between Hugging Face's order and that of GGUF files of families with interleaved
// rotation: within a head, row (half h, pair i) of the first stands at 2 i + h in the second.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "convert/stripes.h"

namespace loongforge::convert {

enum class HeadOrder { kFromPairs, kToPairs };  // of the rows read, to those given

// rows in the other order, as fp32. rows.read_f32 is asked for whole heads from any row on. A
// vector (rows.rows == 1) is reordered by its elements. REQUIRES heads > 0 that divide the rows.
RowSource reorder_heads(RowSource rows, int64_t heads, HeadOrder order);

}  // namespace loongforge::convert
