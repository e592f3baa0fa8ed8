#include "kernels/generic/rows.h"

#include "kernels/avx2/vec.h"

namespace loongforge::kernels::avx2 {

extern const RowsTable kRowsTable = generic::rows_table<V>();

}  // namespace loongforge::kernels::avx2
