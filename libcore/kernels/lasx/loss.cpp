#include "kernels/generic/loss.h"

#include "kernels/lasx/vec.h"

namespace loongforge::kernels::lasx {

extern const LossTable kLossTable = generic::loss_table<V, D>();

}  // namespace loongforge::kernels::lasx
