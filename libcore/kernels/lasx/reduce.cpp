#include "kernels/generic/reduce.h"

#include "kernels/lasx/vec.h"

namespace loongforge::kernels::lasx {

extern const ReduceTable kReduceTable = generic::reduce_table<V>();

}  // namespace loongforge::kernels::lasx
