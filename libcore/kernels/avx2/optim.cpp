#include "kernels/generic/optim.h"

#include "kernels/avx2/vec.h"

namespace loongforge::kernels::avx2 {

extern const OptimTable kOptimTable = generic::optim_table<V, D>();

}  // namespace loongforge::kernels::avx2
