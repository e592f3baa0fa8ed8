#include "kernels/lasx/ops.h"
#include "kernels/generic/attention_family.h"

namespace loongforge::kernels::lasx {
namespace {

struct Choice {
  using V = lasx::V;
  using TileBf16 = PanelTile<Ops, true>;
  using TileF32 = PanelTile<Ops, false>;
  template <class Operand, bool kRounds>
  using Strided = PanelStrided<Ops, kRounds>;
  static constexpr int kStrips = 8;
  static constexpr int kQueries = 96;
  static constexpr int kKeys = 128;
};
using Family = AttentionFamily<Choice>;

}  // namespace

extern const AttentionTable kAttentionTable = {Family::scratch_bytes, Family::forward,
                                               Family::backward};

}  // namespace loongforge::kernels::lasx
