#include "kernels/generic/loss.h"

#include "kernels/avx2/vec.h"

namespace loongforge::kernels::avx2 {

extern const LossTable kLossTable = generic::loss_table<V, D>();

}  // namespace loongforge::kernels::avx2
