#include "kernels/generic/attention_family.h"
#include "kernels/scalar/ops.h"

namespace loongforge::kernels::scalar {

extern const AttentionTable kAttentionTable = AttentionFamily<PanelAttention<Ops>>::table();

}  // namespace loongforge::kernels::scalar
