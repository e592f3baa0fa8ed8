#include "kernels/generic/quant.h"

#include "kernels/scalar/vec.h"

namespace loongforge::kernels::scalar {

extern const QuantTable kQuantTable = generic::quant_table<V, D>();

}  // namespace loongforge::kernels::scalar
