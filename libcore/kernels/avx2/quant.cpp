#include "kernels/generic/quant.h"

#include "kernels/avx2/vec.h"

namespace loongforge::kernels::avx2 {

extern const QuantTable kQuantTable = generic::quant_table<V, D>();

}  // namespace loongforge::kernels::avx2
