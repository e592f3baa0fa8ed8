#include "kernels/generic/optim.h"

#include "kernels/lsx/vec.h"

namespace loongforge::kernels::lsx {

extern const OptimTable kOptimTable = generic::optim_table<V, D>();

}  // namespace loongforge::kernels::lsx
