// B panels of fp32 operands made from NF4 weights. Layout: generic/nf4.h with panels of kNr n.
//
// W^T has n in its lanes: a word's nibbles are looked up one by one, times the lanes' absmax,
// rounded. W has k in its lanes: words of one row are spread and looked up in the same way.
#pragma once

#include "kernels/generic/nf4.h"

namespace loongforge::kernels {
namespace {

// How products become operands: fp32 as they are; rounded to bf16 where no value can be subnormal,
// under 2^-55 or so large that the quick rounding overflows; rounded as round_operand does.
enum class Nf4Rounding { kNone, kQuick, kFull };

// X: R or V. The quick rounding adds 2^16 times the value's binade, whose last place is that of a
// bf16 of this binade, to nearest even; it equals round_operand for 0 and for 2^-55 <= |x| < 2^111.
template <Nf4Rounding kRounding, class X>
LF_INLINE X nf4_operand(X x) {
  if constexpr (kRounding == Nf4Rounding::kNone) return x;
  if constexpr (kRounding == Nf4Rounding::kFull) return x.to_bf16();
  const X binade = X::bit_and(x, X::set1_bits(0xFF800000u));
  return X::fma(binade, X::set1(-65536.0f), X::fma(binade, X::set1(65536.0f), x));
}

template <int64_t kPanel>
LF_INLINE const float* nf4_absmax(const uint8_t* block) {
  return reinterpret_cast<const float*>(block + kNf4Words * kPanel * 4);
}

// Whether the quick rounding is right for all values of the block: each absmax is 0 or its
// magnitude is in [2^-50, 2^100).
template <int64_t kPanel>
LF_INLINE bool nf4_quick(const uint8_t* block) {
  constexpr uint32_t kLeast = (127 - 50) << 23, kLimit = (127 + 100) << 23;
  uint32_t outside = 0;
  for (int64_t i = 0; i < kPanel; ++i) {
    uint32_t u;
    memcpy(&u, nf4_absmax<kPanel>(block) + i, 4);
    u &= 0x7FFFFFFFu;
    outside |= static_cast<uint32_t>(u - kLeast >= kLimit - kLeast) & static_cast<uint32_t>(u != 0);
  }
  return outside == 0;
}

template <class Ops, Nf4Rounding kRounding, int kNibble>
LF_INLINE void nf4_store(const typename Ops::Nf4& table, typename Ops::Nf4::Words words,
                         typename Ops::R absmax, float* dst) {
  nf4_operand<kRounding>(table.template at<kNibble>(words) * absmax).store(dst);
}

// R::kLanes columns of a block, an even number of k.
template <class Ops, Nf4Rounding kRounding>
void nf4_columns(const uint8_t* block, int64_t column, int64_t k, float* dst) {
  using R = typename Ops::R;
  using Table = typename Ops::Nf4;
  constexpr int64_t kPanel = Ops::kNr;
  const Table table;
  const R absmax = R::load(nf4_absmax<kPanel>(block) + column);
  const uint8_t* src = block + column * 4;
  dst += column;
  for (; k >= 8; k -= 8, src += kPanel * 4, dst += 8 * kPanel) {
    const auto words = Table::load(src);
    nf4_store<Ops, kRounding, 0>(table, words, absmax, dst);
    nf4_store<Ops, kRounding, 1>(table, words, absmax, dst + kPanel);
    nf4_store<Ops, kRounding, 2>(table, words, absmax, dst + 2 * kPanel);
    nf4_store<Ops, kRounding, 3>(table, words, absmax, dst + 3 * kPanel);
    nf4_store<Ops, kRounding, 4>(table, words, absmax, dst + 4 * kPanel);
    nf4_store<Ops, kRounding, 5>(table, words, absmax, dst + 5 * kPanel);
    nf4_store<Ops, kRounding, 6>(table, words, absmax, dst + 6 * kPanel);
    nf4_store<Ops, kRounding, 7>(table, words, absmax, dst + 7 * kPanel);
  }
  if (k == 0) return;
  for (auto words = Table::load(src); k > 0; --k, dst += kPanel, words = Table::next(words))
    nf4_store<Ops, kRounding, 0>(table, words, absmax, dst);
}

// ---- W^T: columns n0 .. n0 + kNr - 1, rows k0 .. k0 + k of the product's B. REQUIRES n0 % kNr ==
// 0, k0 % 128 == 0.
template <class Ops, bool kRound>
void panel_of_nf4_t(const PackedWeight& w, int64_t n0, int64_t k0, int64_t k, float* dst) {
  constexpr int64_t kPanel = Ops::kNr;
  const uint8_t* block = nf4_block<kPanel>(w, n0, k0);
  for (int64_t rows = (k + 1) / 2 * 2; rows > 0;
       rows -= kNf4Block, block += kNf4BlockBytes<kPanel>, dst += kNf4Block * kPanel) {
    const int64_t count = rows < kNf4Block ? rows : kNf4Block;
    const bool quick = kRound && nf4_quick<kPanel>(block);
    for (int64_t column = 0; column < kPanel; column += Ops::R::kLanes) {
      if constexpr (!kRound) {
        nf4_columns<Ops, Nf4Rounding::kNone>(block, column, count, dst);
      } else if (quick) {
        nf4_columns<Ops, Nf4Rounding::kQuick>(block, column, count, dst);
      } else {
        nf4_columns<Ops, Nf4Rounding::kFull>(block, column, count, dst);
      }
    }
  }
}

// ---- W: columns j0 .. j0 + kNr - 1 (of k), rows n0 .. n0 + n. REQUIRES j0 % kNr == 0, n0 % 128 ==
// 0.
// 16 columns of up to kNr rows of a block, from its row `words_row` of words on.
template <class Ops, Nf4Rounding kRounding>
LF_INLINE void nf4_rows16(const uint8_t* block, int64_t words_row, int64_t rows, float* dst) {
  using V = typename Ops::V;
  constexpr int64_t kPanel = Ops::kNr;
  const typename Ops::Nf4 table;
  for (int64_t i = 0; i < rows; ++i) {
    const V absmax = V::set1(nf4_absmax<kPanel>(block)[i]);
    uint32_t low, high;
    memcpy(&low, block + (words_row * kPanel + i) * 4, 4);
    memcpy(&high, block + ((words_row + 1) * kPanel + i) * 4, 4);
    nf4_operand<kRounding>(table.row(low, high) * absmax).store(dst + (i ^ 1) * kPanel);
  }
}

template <class Ops, bool kRound>
void panel_of_nf4(const PackedWeight& w, int64_t j0, int64_t n0, int64_t n, float* dst) {
  constexpr int64_t kPanel = Ops::kNr;
  const int64_t total = (n + 1) / 2 * 2;
  const int64_t words_row = j0 % kNf4Block / 8;
  for (int64_t r = 0; r < total; r += kPanel, dst += kPanel * kPanel) {
    const uint8_t* block = nf4_block<kPanel>(w, n0 + r, j0);
    // The block after the next, which is far away: the rows of words that are read, and the absmax.
    const uint8_t* ahead = block + 2 * nf4_panel_bytes<kPanel>(w.k);
    for (int64_t i = 0; i < kPanel / 8 * kPanel * 4; i += 64)
      __builtin_prefetch(ahead + words_row * kPanel * 4 + i);
    for (int64_t i = 0; i < kPanel * 4; i += 64)
      __builtin_prefetch(ahead + kNf4Words * kPanel * 4 + i);
    const int64_t rows = total - r < kPanel ? total - r : kPanel;
    const bool quick = kRound && nf4_quick<kPanel>(block);
    for (int64_t column = 0; column < kPanel; column += 16) {
      const int64_t from = words_row + column / 8;
      if constexpr (!kRound) {
        nf4_rows16<Ops, Nf4Rounding::kNone>(block, from, rows, dst + column);
      } else if (quick) {
        nf4_rows16<Ops, Nf4Rounding::kQuick>(block, from, rows, dst + column);
      } else {
        nf4_rows16<Ops, Nf4Rounding::kFull>(block, from, rows, dst + column);
      }
    }
  }
}

}  // namespace
}  // namespace loongforge::kernels
