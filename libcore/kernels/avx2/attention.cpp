#include "kernels/avx2/tile.h"
#include "kernels/avx2/vec.h"
#include "kernels/generic/attention_family.h"

namespace loongforge::kernels::avx2 {
namespace {

struct Tiles {
  using V = avx2::V;
  using TileBf16 = avx2::TileBf16;
  using TileF32 = avx2::TileF32;
  static constexpr int kStrips = 4;
  static constexpr int kQueries = 96;
  static constexpr int kKeys = 128;
};
using Family = AttentionFamily<Tiles>;

}  // namespace

extern const AttentionTable kAttentionTable = {Family::scratch_bytes, Family::forward,
                                               Family::backward};

}  // namespace loongforge::kernels::avx2
