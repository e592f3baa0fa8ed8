#include "kernels/generic/panel_gemm.h"
#include "kernels/lasx/ops.h"

namespace loongforge::kernels::lasx {

extern const GemmTable kGemmTable = PanelGemm<Ops>::table();

}  // namespace loongforge::kernels::lasx
