#include "kernels/generic/loss.h"

#include "kernels/scalar/vec.h"

namespace loongforge::kernels::scalar {

extern const LossTable kLossTable = generic::loss_table<V, D>();

}  // namespace loongforge::kernels::scalar
