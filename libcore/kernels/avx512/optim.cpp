#include "kernels/generic/optim.h"

#include "kernels/avx512/vec.h"

namespace loongforge::kernels::avx512 {

extern const OptimTable kOptimTable = generic::optim_table<V, D>();

}  // namespace loongforge::kernels::avx512
