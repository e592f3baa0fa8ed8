#include "kernels/generic/quant.h"

#include "kernels/lasx/vec.h"

namespace loongforge::kernels::lasx {

extern const QuantTable kQuantTable = generic::quant_table<V, D>();

}  // namespace loongforge::kernels::lasx
