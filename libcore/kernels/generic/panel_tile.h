// The tiles of an ISA whose operands are fp32 (generic/tile.md), and the strided ones of attention
// (generic/strided.h), from its Ops.
#pragma once

#include <stddef.h>

#include "kernels/generic/panels.h"
#include "kernels/generic/register_tile.h"

namespace loongforge::kernels {
namespace {

// kRound: operands are bf16 images (Precision::kBf16), whose products are exact, so that fma serves
// both.
template <class OpsT, bool kRound>
struct PanelTile {
  using Ops = OpsT;
  using Operand = float;
  static constexpr bool kRounds = kRound;
  static constexpr int kMr = Ops::kMr;
  static constexpr int kNr = Ops::kNr;
  static size_t a_panel_elems(int64_t k) { return static_cast<size_t>(panel_elems<kMr>(k)); }
  static size_t b_panel_elems(int64_t k) { return static_cast<size_t>(panel_elems<kNr>(k)); }

  static void mul(int mr, int nr, int64_t k, const float* a, const float* b, float* c, int64_t ldc,
                  bool accumulate, Ahead ahead = {}) {
    if (nr == kNr && k > 0) return Tiles::mul(mr, (k + 1) / 2, a, b, c, ldc, accumulate, ahead);
    alignas(64) float tile[kMr * kNr] = {};
    if (accumulate) load_tile<kNr>(mr, nr, c, ldc, tile);
    if (k > 0) Tiles::mul(mr, (k + 1) / 2, a, b, tile, kNr, true, ahead);
    store_tile<kNr>(mr, nr, tile, c, ldc);
  }

  // Up to kMaxVecs registers of columns of an A that stands in memory (strided.h), kNarrowRows
  // rows.
  using Tiles = typename Ops::template Tiles<kRound>;
  static void mul_narrow(int vecs, int64_t pairs, const StridedA& a, const Operand* b, float* c,
                         int64_t ldc, bool accumulate) {
    Tiles::narrow(vecs, pairs, a, b, c, ldc, accumulate);
  }
  // k values of a row as operands, in their order, zeros after the last up to a multiple of 16.
  template <class T>
  static void load_operands(const T* src, int64_t k, Operand* dst) {
    using R = typename Ops::R;
    int64_t kk = 0;
    for (; kk + R::kLanes <= k; kk += R::kLanes)
      as_operand<kRound>(src, R::load(src + kk)).store(dst + kk);
    for (; kk % 16 != 0 || kk < k; kk += R::kLanes)
      as_operand<kRound>(src, load_at_most<R>(src + kk, k - kk)).store(dst + kk);
  }

  template <class T>
  static void pack_a(const T* src, int64_t ld, int rows_valid, int64_t k, float* dst) {
    pack_a_rows<Ops, kRound>(src, ld, rows_valid, k, dst);
  }
  template <class T>
  static void pack_a_t(const T* src, int64_t ld, int rows_valid, int64_t k, float* dst) {
    pack_a_columns<Ops, kRound>(src, ld, rows_valid, k, dst);
  }
  template <class T>
  static void pack_b(const T* src, int64_t ld, int cols_valid, int64_t k, float* dst) {
    pack_b_rows<Ops, kRound>(src, ld, cols_valid, k, dst);
  }
  template <class T>
  static void pack_b_t(const T* src, int64_t ld, int cols_valid, int64_t k, float* dst) {
    pack_b_columns<Ops, kRound>(src, ld, cols_valid, k, dst);
  }
};

template <class Ops, bool kRounds>
struct PanelStrided {
  static constexpr int kMr = Ops::kMr;
  static constexpr int kNr = Ops::kNr;

  static void mul(int mr, int nr, int64_t pairs, const StridedA& a, const float* b, float* c,
                  int64_t ldc, bool accumulate) {
    Ops::template Tiles<kRounds>::strided(mr, nr, pairs, a, b, c, ldc, accumulate);
  }
};

}  // namespace
}  // namespace loongforge::kernels
