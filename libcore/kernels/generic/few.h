// Products of up to 4 rows with a packed weight whose values are decoded in registers and never
// stored: generation is bound by reading weights. Micro-kernels as in register_tile.h.
//
// Ops (generic/tile.md). Rows, where stored values come from: kBytes, of 16 values; V load(const
// uint8_t*).
#pragma once

#include "kernels/generic/gemm_family.h"
#include "kernels/generic/panel_nf4.h"

namespace loongforge::kernels {
namespace {

#define LF_FEW_ROWS(X) X(0) X(1) X(2) X(3)
#define LF_FEW_COLS(X, i) X(i, 0) X(i, 1) X(i, 2) X(i, 3)
#define LF_FEW_START_ONE(i, v) \
  R c##i##v = R::zero();       \
  if constexpr (i < kRows && v < kVecs) c##i##v = R::load(c + i * ldc + R::kLanes * v);
#define LF_FEW_START(i) LF_FEW_COLS(LF_FEW_START_ONE, i)
#define LF_FEW_STORE_ONE(i, v) \
  if constexpr (i < kRows && v < kVecs) c##i##v.store(c + i * ldc + R::kLanes * v);
#define LF_FEW_STORE(i) LF_FEW_COLS(LF_FEW_STORE_ONE, i)
// Register v of the row: a part of 16 values that were decoded together.
#define LF_FEW_ADD(i, v)                                        \
  if constexpr (i < kRows && v < kVecs && v / kParts == kGroup) \
    c##i##v = R::mul_add(R::broadcast(a + i), Ops::template part<v % kParts>(b), c##i##v);
#define LF_FEW_STEP(i) LF_FEW_COLS(LF_FEW_ADD, i)
#define LF_FEW_GROUP(group)                                                                    \
  if constexpr (group < kGroups * kPanels) {                                                   \
    constexpr int kGroup = group;                                                              \
    const auto b = from.load((group < kGroups ? src : next) + group % kGroups * Rows::kBytes); \
    LF_FEW_ROWS(LF_FEW_STEP)                                                                   \
  }
#define LF_FEW_K                                                                      \
  {                                                                                   \
    LF_FEW_GROUP(0) LF_FEW_GROUP(1) LF_FEW_GROUP(2) LF_FEW_GROUP(3) src += kRowBytes; \
    if constexpr (kPanels > 1) next += kRowBytes;                                     \
    a += Ops::kMr;                                                                    \
  }

// c[i][0 .. kPanels * kNr - 1] += rows i of a, times `count` rows of kNr stored values, each in one
// or two panels, which are `panel` bytes apart: two where a row's sums would wait for each other.
template <class Ops, int kRows, int kPanels, class Rows>
[[gnu::noinline]] void few_rows(const Rows& rows, const uint8_t* src, int64_t panel, int64_t count,
                                const float* a, float* c, int64_t ldc) {
  using R = typename Ops::R;
  constexpr int kGroups = Ops::kNr / 16;
  constexpr int kVecs = kPanels * Ops::kNr / R::kLanes, kParts = 16 / R::kLanes;
  constexpr int64_t kRowBytes = Rows::kBytes * kGroups;
  const Rows from = rows;
  [[maybe_unused]] const uint8_t* next = src + panel;
  LF_FEW_ROWS(LF_FEW_START)
  for (; count >= 4; count -= 4) {
    // 64 to 512 bytes.
#pragma GCC unroll 8
    for (int64_t i = 0; i < 4 * kRowBytes; i += 64) {
      __builtin_prefetch(src + Ops::kFewAhead + i);
      if constexpr (kPanels > 1) __builtin_prefetch(next + Ops::kFewAhead + i);
    }
    LF_FEW_K LF_FEW_K LF_FEW_K LF_FEW_K
  }
  for (; count > 0; --count) LF_FEW_K
  LF_FEW_ROWS(LF_FEW_STORE)
}
#undef LF_FEW_K
#undef LF_FEW_GROUP
#undef LF_FEW_STEP
#undef LF_FEW_ADD

template <class Ops, class Rows>
void few_rows_of(int rows, const Rows& from, const uint8_t* src, int64_t count, const float* a,
                 float* c, int64_t ldc) {
  using Fn = void (*)(const Rows&, const uint8_t*, int64_t, int64_t, const float*, float*, int64_t);
  static constexpr Fn kFns[kFewRows] = {few_rows<Ops, 1, 1, Rows>, few_rows<Ops, 2, 1, Rows>,
                                        few_rows<Ops, 3, 1, Rows>, few_rows<Ops, 4, 1, Rows>};
  kFns[rows - 1](from, src, 0, count, a, c, ldc);
}

// ---- NF4, one register of columns at a time: more would not fit the registers of every ISA.
#define LF_FEW_NF4(i) \
  if constexpr (i < kRows) c##i##0 = R::mul_add(R::broadcast(a + i), b, c##i##0);
#define LF_FEW_K(nibble)                                                                     \
  {                                                                                          \
    const R b = nf4_operand<Nf4Rounding::kQuick>(table.template at<nibble>(words) * absmax); \
    LF_FEW_ROWS(LF_FEW_NF4)                                                                  \
    a += Ops::kMr;                                                                           \
  }

// R::kLanes columns of W^T in one block. k is even and > 0.
template <class Ops, int kRows>
[[gnu::noinline]] void few_nf4(const uint8_t* block, int64_t column, int64_t k, const float* a,
                               float* c, int64_t ldc) {
  using R = typename Ops::R;
  using Table = typename Ops::Nf4;
  constexpr int kVecs = 1;
  constexpr int64_t kPanel = Ops::kNr;
  const Table table;
  const R absmax = R::load(nf4_absmax<kPanel>(block) + column);
  const uint8_t* src = block + column * 4;
  c += column;
  LF_FEW_ROWS(LF_FEW_START)
  for (; k >= 8; k -= 8, src += kPanel * 4) {
    const auto words = Table::load(src);
    __builtin_prefetch(src + 2 * kNf4BlockBytes<kPanel>);
    LF_FEW_K(0) LF_FEW_K(1) LF_FEW_K(2) LF_FEW_K(3) LF_FEW_K(4) LF_FEW_K(5) LF_FEW_K(6) LF_FEW_K(7)
  }
  if (k > 0) {
    auto words = Table::load(src);
    for (; k > 0; --k) {
      LF_FEW_K(0)
      words = Table::next(words);
    }
  }
  LF_FEW_ROWS(LF_FEW_STORE)
}
#undef LF_FEW_K
#undef LF_FEW_NF4
#undef LF_FEW_STORE
#undef LF_FEW_STORE_ONE
#undef LF_FEW_START
#undef LF_FEW_START_ONE
#undef LF_FEW_COLS
#undef LF_FEW_ROWS

template <class Ops>
LF_INLINE void few_nf4_rows(int rows, const uint8_t* block, int64_t k, const float* a, float* c,
                            int64_t ldc) {
  using Fn = void (*)(const uint8_t*, int64_t, int64_t, const float*, float*, int64_t);
  static constexpr Fn kFns[kFewRows] = {few_nf4<Ops, 1>, few_nf4<Ops, 2>, few_nf4<Ops, 3>,
                                        few_nf4<Ops, 4>};
  for (int64_t column = 0; column < Ops::kNr; column += Ops::R::kLanes)
    kFns[rows - 1](block, column, k, a, c, ldc);
}

// c[i][0 .. kNr - 1] += rows i < rows of a, times columns n0 .. n0 + kNr - 1 of W^T. REQUIRES rows
// <= kFewRows.
template <class Ops, class Tile>
void few_of_nf4_t(int rows, const PackedWeight& w, int64_t n0, int64_t k0, int64_t k,
                  const float* a, float* c, int64_t ldc) {
  constexpr int64_t kPanel = Ops::kNr;
  const uint8_t* block = nf4_block<kPanel>(w, n0, k0);
  for (int64_t rest = (k + 1) / 2 * 2; rest > 0;
       rest -= kNf4Block, block += kNf4BlockBytes<kPanel>, a += kNf4Block * Ops::kMr) {
    const int64_t count = rest < kNf4Block ? rest : kNf4Block;
    if (nf4_quick<kPanel>(block)) {
      few_nf4_rows<Ops>(rows, block, count, a, c, ldc);
    } else {
      // Seldom: the full rounding would not leave the sums their registers.
      alignas(64) float panel[kNf4Block * kPanel];
      for (int64_t column = 0; column < kPanel; column += Ops::R::kLanes)
        nf4_columns<Ops, Nf4Rounding::kFull>(block, column, count, panel);
      Tile::mul(rows, Ops::kNr, count, a, panel, c, ldc, true);
    }
  }
}

}  // namespace
}  // namespace loongforge::kernels
