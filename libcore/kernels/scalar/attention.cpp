#include "kernels/generic/attention_family.h"
#include "kernels/scalar/strided_tile.h"
#include "kernels/scalar/tile.h"
#include "kernels/scalar/vec.h"

namespace loongforge::kernels::scalar {
namespace {

struct Choice {
  using V = scalar::V;
  using TileBf16 = scalar::TileBf16;
  using TileF32 = scalar::TileF32;
  template <class Operand, bool kRounds>
  using Strided = StridedTile<Operand, kRounds>;
  static constexpr int kStrips = 4;
  static constexpr int kQueries = 96;
  static constexpr int kKeys = 128;
};
using Family = AttentionFamily<Choice>;

}  // namespace

extern const AttentionTable kAttentionTable = {Family::scratch_bytes, Family::forward,
                                               Family::backward};

}  // namespace loongforge::kernels::scalar
