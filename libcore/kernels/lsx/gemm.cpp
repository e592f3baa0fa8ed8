#include "kernels/lsx/ops.h"
#include "kernels/generic/panel_gemm.h"

namespace loongforge::kernels::lsx {

extern const GemmTable kGemmTable = PanelGemm<Ops>::table();

}  // namespace loongforge::kernels::lsx
