#include "kernels/avx2/ops.h"
#include "kernels/generic/attention_family.h"

namespace loongforge::kernels::avx2 {

extern const AttentionTable kAttentionTable = AttentionFamily<PanelAttention<Ops>>::table();

}  // namespace loongforge::kernels::avx2
