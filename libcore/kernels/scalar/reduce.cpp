#include "kernels/generic/reduce.h"

#include "kernels/scalar/vec.h"

namespace loongforge::kernels::scalar {

extern const ReduceTable kReduceTable = generic::reduce_table<V>();

}  // namespace loongforge::kernels::scalar
