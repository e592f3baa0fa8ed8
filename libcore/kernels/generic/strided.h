// How attention hands the A operand to its register tiles: as it stands in memory, by strides, not
// packed into a panel.
//
// Each ISA's strided_tile.h provides, for the operand types that its tiles use (float, and Bf16
// where vdpbf16ps is there; kRounds: they hold bf16 images, whose products are exact),
//   template <class Operand, bool kRounds> struct StridedTile {
//     static constexpr int kMr, kNr;   // as the ISA's Tile of that operand
//     // c[i * ldc + j] (+)= sum over k of A(i, k) B(k, j) for i < mr, j < nr; nr a multiple of 16,
//     at most kNr. The same
//     // order of accumulation, so the same bits, as Tile::mul. b: a panel, or its part from an
//     even k on. static void mul(int mr, int nr, int64_t pairs, const StridedA& a, const Operand*
//     b, float* c, int64_t ldc,
//                     bool accumulate);
//   };
#pragma once

#include <stdint.h>

#include "kernels/types.h"

namespace loongforge::kernels {

// Words of 32 bits: an fp32 value, or a pair of bf16 (even k, odd k). Row i of pair p stands at
// data + i * row + p * step; there, fp32 has its values of the odd and the even k at `odd` and
// `even`.
struct StridedA {
  const void* data;
  int64_t row, step, odd, even;
};

}  // namespace loongforge::kernels
