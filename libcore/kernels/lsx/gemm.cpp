#include "kernels/generic/panel_gemm.h"
#include "kernels/lsx/ops.h"

namespace loongforge::kernels::lsx {

extern const GemmTable kGemmTable = PanelGemm<Ops>::table();

}  // namespace loongforge::kernels::lsx
