// Packed weights of an ISA whose instructions multiply pairs of bf16, and how B panels are made
// from them, and from plain matrices.
//
// A weight [n, k] is cut into panels of 64 n, each into blocks of 64 k, padded with zeros; a block
// is contiguous:
//   FP8   [k/4][16-column group][64 bytes]: byte (n/4)*16 + (k/2%2)*8 + (n%4)*2 + k%2 of group
//   n/16%4, so that looking up the low and the high bytes of bf16 images and unpacking them yields
//   pairs of k for 16 n;
//   bf16  [k/2][n][k%2]: a B panel of bf16 operands as it stands;
//   fp32  [k'][n], k' odd first: a B panel of fp32 operands as it stands;
//   NF4   see nf4.h.
// So both walks, W^T (panels of n) and W (panels of k), read whole blocks.
#pragma once

#include "kernels/gemm.h"
#include "kernels/generic/fp8_bits.h"
#include "kernels/generic/pair_panels.h"
#include "kernels/generic/panel_nf4.h"

namespace loongforge::kernels {
namespace {

template <class Ops>
struct PairWeights {
  using V = typename Ops::V;
  static constexpr int64_t kPanel = Ops::kNr;
  static_assert(kPanel == 64);

  static int64_t padded(int64_t x) { return (x + 63) / 64 * 64; }
  static int exp_of(const PackedWeight& w, int64_t row, int64_t col) {
    return w.scale_exps[row / kWeightBlock * ((w.k + kWeightBlock - 1) / kWeightBlock) +
                        col / kWeightBlock];
  }
  // Element (row, col) stands at the sum of both.
  static int64_t row_offset(Elem elem, int64_t k_padded, int64_t row) {
    const int64_t n = row % 64;
    const int64_t panel = row / 64 * 64 * k_padded;
    if (elem == Elem::kF32) return panel + n;
    if (elem == Elem::kBf16) return panel + n * 2;
    return panel + n / 16 * 64 + n % 16 / 4 * 16 + n % 4 * 2;
  }
  static int64_t col_offset(Elem elem, int64_t col) {
    if (elem == Elem::kF32) return (col ^ 1) * 64;
    if (elem == Elem::kBf16) return col / 2 * 128 + col % 2;
    return col / 4 * 256 + col / 2 % 2 * 8 + col % 2;
  }

  template <class Tile>
  static const typename Tile::Operand* direct_panel(const PackedWeight& w, int64_t j0, int64_t k0) {
    constexpr bool kPairs = sizeof(typename Tile::Operand) == 2;
    if (w.elem != (kPairs ? Elem::kBf16 : Elem::kF32) || (Tile::kRounds && !kPairs)) return nullptr;
    return reinterpret_cast<const typename Tile::Operand*>(w.data) + j0 * padded(w.k) + k0 * 64;
  }

  // ---- W^T: columns n0 .. n0 + 63, rows k0 .. k0 + k of the product's B. REQUIRES n0 % 64 == 0,
  // k0 % 128 == 0.
  template <class Tile>
  static void panel_of_weight_t(const PackedWeight& w, int64_t n0, int64_t k0, int64_t k,
                                typename Tile::Operand* dst) {
    if (w.elem == Elem::kNf4) return panel_of_nf4_t<Tile>(w, n0, k0, k, dst);
    const int64_t pairs = (k + 1) / 2;
    const int64_t first = n0 * padded(w.k) + k0 * 64;  // in elements
    if (w.elem == Elem::kF32) {
      const float* src = reinterpret_cast<const float*>(w.data) + first;
      for (int64_t p = 0; p < pairs; ++p, src += 128)
#pragma GCC unroll 16
        for (int g = 0; g < 4; ++g)
          Ops::template store_values<Tile>(dst, p, g, V::load(src + 64 + g * 16),
                                           V::load(src + g * 16));
      return;
    }
    if (w.elem == Elem::kBf16) {
      const Bf16* src = reinterpret_cast<const Bf16*>(w.data) + first;
      for (int64_t p = 0; p < pairs; ++p, src += 128)
#pragma GCC unroll 16
        for (int g = 0; g < 4; ++g) Ops::store_pairs(dst, p, g, Ops::load_words(src + g * 32));
      return;
    }
    const uint8_t* src = w.data + first;
    for (int64_t kk = 0; kk < k; kk += kWeightBlock) {
      const typename Ops::Table t(fp8_images(w.elem), exp_of(w, n0, k0 + kk), Tile::kRounds);
      const int64_t end = kk + kWeightBlock < k ? (kk + kWeightBlock) / 2 : pairs;
      int64_t p = kk / 2;
      for (; p + 1 < end; p += 2, src += 256) {
#pragma GCC unroll 16
        for (int g = 0; g < 4; ++g) {
          const auto x = t.decode(Ops::load_words(src + g * 64));
          Ops::store_pairs(dst, p, g, x.lo);
          Ops::store_pairs(dst, p + 1, g, x.hi);
        }
      }
      if (p < end)
#pragma GCC unroll 16
        for (int g = 0; g < 4; ++g)
          Ops::store_pairs(dst, p, g, t.decode(Ops::load_words(src + g * 64)).lo);
    }
  }

  // ---- W: columns j0 .. j0 + 63 (of k), rows n0 .. n0 + n. REQUIRES j0 % 64 == 0, n0 % 128 == 0.
  template <class Tile>
  static void panel_of_weight(const PackedWeight& w, int64_t j0, int64_t n0, int64_t n,
                              typename Tile::Operand* dst) {
    if (w.elem == Elem::kNf4) return panel_of_nf4<Tile>(w, j0, n0, n, dst);
    const int64_t pairs = (n + 1) / 2;
    typename Ops::Table t{};
    for (int64_t p = 0; p < pairs; p += 8, dst += 8 * 128) {
      const int64_t row = n0 + 2 * p;
      const int64_t block = row / 64 * 64 * padded(w.k) + j0 * 64;  // in elements
      const int64_t group = row % 64 / 16;
      // A quarter of the next block of rows, which is far away.
      const int64_t quarter = 16 * elem_bytes(w.elem);
      const uint8_t* next =
          w.data + (block + 64 * padded(w.k)) * elem_bytes(w.elem) + group * quarter * 64;
      for (int64_t i = 0; i < quarter; ++i) __builtin_prefetch(next + i * 64, 0, 2);
      if (w.elem == Elem::kF32) {
        Ops::template f32_rows16<Tile>(reinterpret_cast<const float*>(w.data) + block + group * 16,
                                       pairs - p, dst);
      } else if (w.elem == Elem::kBf16) {
        Ops::bf16_rows16(reinterpret_cast<const Bf16*>(w.data) + block + group * 32, pairs - p,
                         dst);
      } else {
        if (row % kWeightBlock == 0)
          t = typename Ops::Table(fp8_images(w.elem), exp_of(w, row, j0), Tile::kRounds);
        Ops::fp8_rows16(t, w.data + block + group * 64, pairs - p, dst);
      }
    }
  }

  // ---- Plain FP8 with row-block exponents: rows k0 .. k0 + k of b, columns j0 .. j0 + 63, the
  // first cols of them valid.
  template <class Tile>
  static void panel_of_fp8(const Mat& b, int64_t j0, int cols, int64_t k0, int64_t k,
                           typename Tile::Operand* dst) {
    const typename Ops::Table t(fp8_images(b.elem), 0, false);
    const int8_t* exps = b.exps + k0 * b.ld_exps + j0 / kFeatureBlock;
    const uint8_t* codes = static_cast<const uint8_t*>(b.data) + k0 * b.ld + j0;
    for (int64_t kk = 0; kk < k; kk += 2, codes += 2 * b.ld, exps += 2 * b.ld_exps) {
      // The next rows' lines are far apart, where the CPU does not look for them by itself.
      __builtin_prefetch(codes + Ops::kRowsAhead * b.ld, 0, 2);
      __builtin_prefetch(codes + (Ops::kRowsAhead + 1) * b.ld, 0, 2);
      const bool both = kk + 1 < k;
      Ops::template fp8_row_pair<Tile::kRounds>(t, codes, both ? codes + b.ld : nullptr, cols,
                                                exps[0], both ? exps[b.ld_exps] : 0, kk / 2, dst);
    }
  }

  // Rows, at most, that are multiplied with two panels at a time: two streams from memory.
  static constexpr int kWideRows = 1;

  // ---- Products of up to kFewRows rows of a with columns n0 .. n0 + 63 of W^T; wide: of up to
  // kWideRows rows with twice the columns.
  template <class Tile>
  static void few_of_weight_t(int rows, bool wide, const PackedWeight& w, int64_t n0, int64_t k0,
                              int64_t k, const typename Tile::Operand* a, float* c, int64_t ldc,
                              bool accumulate) {
    const size_t bytes = (wide ? 128 : 64) * sizeof(float);
    for (int i = 0; i < rows && !accumulate; ++i) memset(c + i * ldc, 0, bytes);
    if (w.elem == Elem::kNf4) {
      few_of_nf4_t<Tile>(rows, w, n0, k0, k, a, c, ldc);
      if (wide) few_of_nf4_t<Tile>(rows, w, n0 + 64, k0, k, a, c + 64, ldc);
      return;
    }
    const int64_t pairs = (k + 1) / 2, first = n0 * padded(w.k) + k0 * 64;
    const int64_t panel = padded(w.k) * 64 * elem_bytes(w.elem);
    if (w.elem == Elem::kBf16)
      return Ops::template few_bf16_rows<Tile>(rows, wide, w.data + first * 2, panel, pairs, a, c,
                                               ldc);
    const int8_t* exps = w.scale_exps +
                         n0 / kWeightBlock * ((w.k + kWeightBlock - 1) / kWeightBlock) +
                         k0 / kWeightBlock;
    Ops::template few_fp8_rows<Tile>(rows, wide, w.data + first, panel, fp8_images(w.elem), exps,
                                     pairs, a, c, ldc);
  }

 private:
  static constexpr int64_t kNf4Bytes = kNf4BlockBytes<kPanel>;

  // 16 n of a block, `pairs` pairs of k.
  template <Nf4Rounding kRounding, class Operand>
  static void nf4_columns(const uint8_t* block, int group, int64_t pairs, Operand* dst) {
    using Table = typename Ops::Nf4;
    const Table table;
    const V absmax = V::load(nf4_absmax<kPanel>(block) + group * 16);
    const auto value = [&](auto words, auto nibble) {
      return nf4_operand<kRounding>(table.template at<nibble.value>(words) * absmax);
    };
    const uint8_t* src = block + group * 64;
    int64_t p = 0;
    for (; p + 4 <= pairs; p += 4, src += kPanel * 4) {
      const auto words = Table::load(src);
      Ops::put_pair(dst, p, group, value(words, Index<0>{}), value(words, Index<1>{}));
      Ops::put_pair(dst, p + 1, group, value(words, Index<2>{}), value(words, Index<3>{}));
      Ops::put_pair(dst, p + 2, group, value(words, Index<4>{}), value(words, Index<5>{}));
      Ops::put_pair(dst, p + 3, group, value(words, Index<6>{}), value(words, Index<7>{}));
    }
    if (p == pairs) return;
    for (auto words = Table::load(src); p < pairs; ++p, words = Table::next(Table::next(words)))
      Ops::put_pair(dst, p, group, value(words, Index<0>{}), value(words, Index<1>{}));
  }
  template <int kValue>
  struct Index {
    static constexpr int value = kValue;
  };

  // W^T, as panel_of_weight_t().
  template <class Tile>
  static void panel_of_nf4_t(const PackedWeight& w, int64_t n0, int64_t k0, int64_t k,
                             typename Tile::Operand* dst) {
    const uint8_t* block = nf4_block<kPanel>(w, n0, k0);
    for (int64_t pairs = (k + 1) / 2; pairs > 0;
         pairs -= kNf4Block / 2, block += kNf4Bytes, dst += kNf4Block * 64) {
      const int64_t count = pairs < kNf4Block / 2 ? pairs : kNf4Block / 2;
      const bool quick = Tile::kRounds && nf4_quick<kPanel>(block);
      for (int group = 0; group < 4; ++group) {
        if constexpr (!Tile::kRounds) {
          nf4_columns<Nf4Rounding::kNone>(block, group, count, dst);
        } else if (quick) {
          nf4_columns<Nf4Rounding::kQuick>(block, group, count, dst);
        } else {
          nf4_columns<Nf4Rounding::kFull>(block, group, count, dst);
        }
      }
    }
  }

  // W, as panel_of_weight(): a table of operands for each row n.
  template <class Tile>
  static void panel_of_nf4(const PackedWeight& w, int64_t j0, int64_t n0, int64_t n,
                           typename Tile::Operand* dst) {
    const int64_t pairs = (n + 1) / 2;
    const uint8_t* block = nf4_block<kPanel>(w, n0, j0);
    for (int64_t p = 0; p < pairs; ++p) {
      const int64_t row = 2 * p % kPanel;
      if (row == 0) block = nf4_block<kPanel>(w, n0 + 2 * p, j0);
      // The next panel's block is far away: a line or two of it at a time.
      const uint8_t* next = block + nf4_panel_bytes<kPanel>(w.k) + row / 2 * 64;
      __builtin_prefetch(next, 0, 2);
      if (row < 8) __builtin_prefetch(next + 32 * 64, 0, 2);
      const float* absmax = nf4_absmax<kPanel>(block) + row;
      const typename Ops::template Nf4Row<Tile::kRounds> even(block + row * 4, absmax[0]),
          odd(block + (row + 1) * 4, absmax[1]);
#pragma GCC unroll 16
      for (int q = 0; q < 4; ++q) Ops::put_pair(dst, p, q, odd.operands(q), even.operands(q));
    }
  }

  template <class Tile>
  static void few_of_nf4_t(int rows, const PackedWeight& w, int64_t n0, int64_t k0, int64_t k,
                           const typename Tile::Operand* a, float* c, int64_t ldc) {
    const uint8_t* block = nf4_block<kPanel>(w, n0, k0);
    constexpr int64_t kStep = kNf4Block / 2;
    for (int64_t pairs = (k + 1) / 2; pairs > 0;
         pairs -= kStep, block += kNf4Bytes, a += kNf4Block * Tile::kMr) {
      const int64_t count = pairs < kStep ? pairs : kStep;
      if (nf4_quick<kPanel>(block)) {
        Ops::template few_nf4_rows<Tile>(rows, block, count, a, c, ldc);
      } else {
        // Seldom: the full rounding would not leave the sums their registers.
        alignas(64) typename Tile::Operand panel[kNf4Block * 64];
        for (int group = 0; group < 4; ++group)
          nf4_columns<Nf4Rounding::kFull>(block, group, count, panel);
        Tile::mul(rows, 64, count * 2, a, panel, c, ldc, true);
      }
    }
  }
};

}  // namespace
}  // namespace loongforge::kernels
