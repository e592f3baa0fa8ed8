#include "kernels/generic/rows.h"

#include "kernels/avx512/vec.h"

namespace loongforge::kernels::avx512 {

extern const RowsTable kRowsTable = generic::rows_table<V>();

}  // namespace loongforge::kernels::avx512
