#include "kernels/generic/loss.h"

#include "kernels/lsx/vec.h"

namespace loongforge::kernels::lsx {

extern const LossTable kLossTable = generic::loss_table<V, D>();

}  // namespace loongforge::kernels::lsx
