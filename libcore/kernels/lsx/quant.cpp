#include "kernels/generic/quant.h"

#include "kernels/lsx/vec.h"

namespace loongforge::kernels::lsx {

extern const QuantTable kQuantTable = generic::quant_table<V, D>();

}  // namespace loongforge::kernels::lsx
