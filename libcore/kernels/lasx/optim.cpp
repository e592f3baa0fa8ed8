#include "kernels/generic/optim.h"

#include "kernels/lasx/vec.h"

namespace loongforge::kernels::lasx {

extern const OptimTable kOptimTable = generic::optim_table<V, D>();

}  // namespace loongforge::kernels::lasx
