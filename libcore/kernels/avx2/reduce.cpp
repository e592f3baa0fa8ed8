#include "kernels/generic/reduce.h"

#include "kernels/avx2/vec.h"

namespace loongforge::kernels::avx2 {

extern const ReduceTable kReduceTable = generic::reduce_table<V>();

}  // namespace loongforge::kernels::avx2
