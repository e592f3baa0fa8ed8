#include "kernels/generic/reduce.h"

#include "kernels/lsx/vec.h"

namespace loongforge::kernels::lsx {

extern const ReduceTable kReduceTable = generic::reduce_table<V>();

}  // namespace loongforge::kernels::lsx
