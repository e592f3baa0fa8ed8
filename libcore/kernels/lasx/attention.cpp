#include "kernels/generic/attention_family.h"
#include "kernels/lasx/ops.h"

namespace loongforge::kernels::lasx {

extern const AttentionTable kAttentionTable = AttentionFamily<PanelAttention<Ops>>::table();

}  // namespace loongforge::kernels::lasx
