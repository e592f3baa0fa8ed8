#include "kernels/generic/reduce.h"

#include "kernels/avx512/vec.h"

namespace loongforge::kernels::avx512 {

extern const ReduceTable kReduceTable = generic::reduce_table<V>();

}  // namespace loongforge::kernels::avx512
