#include "kernels/generic/rows.h"

#include "kernels/scalar/vec.h"

namespace loongforge::kernels::scalar {

extern const RowsTable kRowsTable = generic::rows_table<V>();

}  // namespace loongforge::kernels::scalar
