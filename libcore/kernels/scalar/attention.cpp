#include "kernels/generic/attention_family.h"
#include "kernels/scalar/tile.h"
#include "kernels/scalar/vec.h"

namespace loongforge::kernels::scalar {
namespace {

struct Tiles {
  using V = scalar::V;
  using TileBf16 = scalar::TileBf16;
  using TileF32 = scalar::TileF32;
  static constexpr int kStrips = 4;
  static constexpr int kQueries = 96;
  static constexpr int kKeys = 128;
};
using Family = AttentionFamily<Tiles>;

}  // namespace

extern const AttentionTable kAttentionTable = {Family::scratch_bytes, Family::forward,
                                               Family::backward};

}  // namespace loongforge::kernels::scalar
