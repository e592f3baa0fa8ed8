#include "kernels/generic/panel_gemm.h"
#include "kernels/scalar/ops.h"

namespace loongforge::kernels::scalar {

extern const GemmTable kGemmTable = PanelGemm<Ops>::table();

}  // namespace loongforge::kernels::scalar
