#include "kernels/generic/rows.h"

#include "kernels/lsx/vec.h"

namespace loongforge::kernels::lsx {

extern const RowsTable kRowsTable = generic::rows_table<V>();

}  // namespace loongforge::kernels::lsx
