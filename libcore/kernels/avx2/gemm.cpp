#include "kernels/avx2/ops.h"
#include "kernels/generic/panel_gemm.h"

namespace loongforge::kernels::avx2 {

extern const GemmTable kGemmTable = PanelGemm<Ops>::table();

}  // namespace loongforge::kernels::avx2
