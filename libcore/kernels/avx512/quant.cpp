#include "kernels/generic/quant.h"

#include "kernels/avx512/vec.h"

namespace loongforge::kernels::avx512 {

extern const QuantTable kQuantTable = generic::quant_table<V, D>();

}  // namespace loongforge::kernels::avx512
