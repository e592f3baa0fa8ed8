#include "kernels/generic/rows.h"

#include "kernels/lasx/vec.h"

namespace loongforge::kernels::lasx {

extern const RowsTable kRowsTable = generic::rows_table<V>();

}  // namespace loongforge::kernels::lasx
