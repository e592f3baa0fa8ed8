#include "kernels/generic/optim.h"

#include "kernels/scalar/vec.h"

namespace loongforge::kernels::scalar {

extern const OptimTable kOptimTable = generic::optim_table<V, D>();

}  // namespace loongforge::kernels::scalar
