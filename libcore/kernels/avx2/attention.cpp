#include "kernels/avx2/strided_tile.h"
#include "kernels/avx2/tile.h"
#include "kernels/avx2/vec.h"
#include "kernels/generic/attention_family.h"

namespace loongforge::kernels::avx2 {
namespace {

struct Choice {
  using V = avx2::V;
  using TileBf16 = avx2::TileBf16;
  using TileF32 = avx2::TileF32;
  template <class Operand, bool kRounds>
  using Strided = StridedTile<Operand, kRounds>;
  static constexpr int kStrips = 8;
  static constexpr int kQueries = 96;
  static constexpr int kKeys = 128;
};
using Family = AttentionFamily<Choice>;

}  // namespace

extern const AttentionTable kAttentionTable = {Family::scratch_bytes, Family::forward,
                                               Family::backward};

}  // namespace loongforge::kernels::avx2
