#include "kernels/generic/loss.h"

#include "kernels/avx512/vec.h"

namespace loongforge::kernels::avx512 {

extern const LossTable kLossTable = generic::loss_table<V, D>();

}  // namespace loongforge::kernels::avx512
