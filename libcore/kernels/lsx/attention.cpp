#include "kernels/generic/attention_family.h"
#include "kernels/lsx/ops.h"

namespace loongforge::kernels::lsx {

extern const AttentionTable kAttentionTable = AttentionFamily<PanelAttention<Ops>>::table();

}  // namespace loongforge::kernels::lsx
