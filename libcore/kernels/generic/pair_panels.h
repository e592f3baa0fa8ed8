// Packing of operand panels, pair of k by pair of k, for an ISA whose instructions multiply pairs
// of bf16 (Operand Bf16) and, on the same weights, fp32 (Operand float): the order of
// generic/pack.h.
//
// Ops (tile.md, "Pairs"): kMr, kNr, kRowsAhead; Row<Operand, kRound>, 16 pairs as operands; how
// rows are loaded, transposed and written.
#pragma once

#include <stddef.h>

#include "kernels/generic/pack.h"
#include "kernels/generic/register_tile.h"

namespace loongforge::kernels {
namespace {

// ---- B panels of kNr columns.

// src[kk, j]
template <class Ops, bool kRound, class T, class Operand>
void pack_b_pair_rows(const T* src, int64_t ld, int cols, int64_t k, Operand* dst) {
  constexpr int kColumns = static_cast<int>(64 / sizeof(T));  // of a line
  constexpr int kRows = kColumns / 16;
  for (int64_t kk = 0; kk < k; kk += 2, src += 2 * ld) {
    for (int j = 0; j < Ops::kNr; j += kColumns) {
      // The next rows' lines are far apart, where the CPU does not look for them by itself.
      __builtin_prefetch(src + Ops::kRowsAhead * ld + j, 0, 2);
      __builtin_prefetch(src + (Ops::kRowsAhead + 1) * ld + j, 0, 2);
      const int left = cols - j;
      const int n = left >= kColumns ? kColumns : left > 0 ? left : 0;
      typename Ops::template Row<Operand, kRound> rows[kRows];
      Ops::load_columns(src + j, kk + 1 < k ? src + ld + j : nullptr, n, rows);
#pragma GCC unroll 2
      for (int i = 0; i < kRows; ++i) Ops::store_row(dst, kk / 2, j / 16 + i, rows[i]);
    }
  }
}

// src[j, kk]
template <class Ops, bool kRound, class T, class Operand>
void pack_b_pair_columns(const T* src, int64_t ld, int cols, int64_t k, Operand* dst) {
  for (int64_t kk = 0; kk < k; kk += 32) {
    const int n = static_cast<int>(k - kk < 32 ? k - kk : 32);
    for (int group = 0; group < Ops::kNr / 16; ++group) {
      typename Ops::template Row<Operand, kRound> rows[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        const int j = group * 16 + i;
        Ops::load_pairs(src + j * ld + kk, j < cols ? n : 0, &rows[i]);
      }
      Ops::transpose_rows(rows, (n + 1) / 2, kk / 2, group, dst);
    }
  }
}

// ---- A panels of kMr rows.

// src[i, kk]
template <class Ops, bool kRound, class T, class Operand>
void pack_a_pair_rows(const T* src, int64_t ld, int valid, int64_t k, Operand* dst) {
  for (int64_t kk = 0; kk < k; kk += 32) {
    const int n = static_cast<int>(k - kk < 32 ? k - kk : 32);
    typename Ops::template Row<Operand, kRound> rows[Ops::kMr];
#pragma GCC unroll 16
    for (int i = 0; i < Ops::kMr; ++i)
      Ops::load_pairs(src + i * ld + kk, i < valid ? n : 0, &rows[i]);
    Ops::write_a(rows, (n + 1) / 2, dst + kk * Ops::kMr);
  }
}

// src[kk, i]
template <class Ops, bool kRound, class T, class Operand>
void pack_a_pair_columns(const T* src, int64_t ld, int valid, int64_t k, Operand* dst) {
  for (int64_t kk = 0; kk < k; kk += 2, src += 2 * ld, dst += 2 * Ops::kMr) {
    typename Ops::template Row<Operand, kRound> row;
    Ops::load_six(src, kk + 1 < k ? src + ld : nullptr, valid, &row);
    Ops::store_a_pair(dst, row);
  }
}

// The tile (tile.md) whose operands are multiplied by Step (register_tile.h).
template <class OpsT, class Step, class OperandT, bool kRound>
struct PairTile {
  using Ops = OpsT;
  using Operand = OperandT;
  using Tiles = RegisterTiles<Step, 2>;
  static constexpr bool kRounds = kRound;
  static constexpr int kMr = Ops::kMr;
  static constexpr int kNr = Ops::kNr;
  static size_t a_panel_elems(int64_t k) { return static_cast<size_t>(panel_elems<kMr>(k)); }
  static size_t b_panel_elems(int64_t k) { return static_cast<size_t>(panel_elems<kNr>(k)); }

  static void mul(int mr, int nr, int64_t k, const Operand* a, const Operand* b, float* c,
                  int64_t ldc, bool accumulate, Ahead ahead = {}) {
    if (nr == kNr && k > 0) return Tiles::mul(mr, (k + 1) / 2, a, b, c, ldc, accumulate, ahead);
    alignas(64) float tile[kMr * kNr] = {};
    if (accumulate) load_tile<kNr>(mr, nr, c, ldc, tile);
    if (k > 0) Tiles::mul(mr, (k + 1) / 2, a, b, tile, kNr, true, ahead);
    store_tile<kNr>(mr, nr, tile, c, ldc);
  }

  // Up to kMaxVecs registers of columns of an A that stands in memory (strided.h), kNarrowRows
  // rows.
  static void mul_narrow(int vecs, int64_t pairs, const StridedA& a, const Operand* b, float* c,
                         int64_t ldc, bool accumulate) {
    Tiles::narrow(vecs, pairs, a, b, c, ldc, accumulate);
  }
  // k values of a row as operands, in their order, zeros after the last up to a multiple of 16.
  template <class T>
  static void load_operands(const T* src, int64_t k, Operand* dst) {
    int64_t kk = 0;
    for (; kk + 16 <= k; kk += 16) store_operand(src, Ops::V::load(src + kk), dst + kk);
    if (kk < k) store_operand(src, Ops::V::load_part(src + kk, static_cast<int>(k - kk)), dst + kk);
  }

  template <class T>
  static void pack_a(const T* src, int64_t ld, int rows_valid, int64_t k, Operand* dst) {
    pack_a_pair_rows<Ops, kRound>(src, ld, rows_valid, k, dst);
  }
  template <class T>
  static void pack_a_t(const T* src, int64_t ld, int rows_valid, int64_t k, Operand* dst) {
    pack_a_pair_columns<Ops, kRound>(src, ld, rows_valid, k, dst);
  }
  template <class T>
  static void pack_b(const T* src, int64_t ld, int cols_valid, int64_t k, Operand* dst) {
    pack_b_pair_rows<Ops, kRound>(src, ld, cols_valid, k, dst);
  }
  template <class T>
  static void pack_b_t(const T* src, int64_t ld, int cols_valid, int64_t k, Operand* dst) {
    pack_b_pair_columns<Ops, kRound>(src, ld, cols_valid, k, dst);
  }

 private:
  using V = typename Ops::V;
  static LF_INLINE void store_operand(const void*, V x, Bf16* dst) { x.store(dst); }
  static LF_INLINE void store_operand(const float*, V x, float* dst) {
    (kRound ? x.to_bf16() : x).store(dst);
  }
  static LF_INLINE void store_operand(const Bf16*, V x, float* dst) {
    if (kRound) x = V::select_lt(V::abs(x), V::set1(0x1p-55f), V::zero(), x);
    x.store(dst);
  }
};

template <class Ops, class Step, class Operand>
struct PairStrided {
  static constexpr int kMr = Ops::kMr;
  static constexpr int kNr = Ops::kNr;

  static void mul(int mr, int nr, int64_t pairs, const StridedA& a, const Operand* b, float* c,
                  int64_t ldc, bool accumulate) {
    // About 48 instructions that multiply in a turn.
    RegisterTiles<Step, 2 / Step::kPerPair>::strided(mr, nr, pairs, a, b, c, ldc, accumulate);
  }
};

}  // namespace
}  // namespace loongforge::kernels
