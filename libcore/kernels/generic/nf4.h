// Packed NF4 weights, once for every ISA.
//
// A weight [n, k] is cut into panels of kPanel n and blocks of 64 k. A block is contiguous: 8 rows
// of kPanel words, word n of row g the 8 codes of k = 8 g .. 8 g + 7 as the file has them, then the
// kPanel absmax. So nibble i of a word, counted from its lowest bit, is the code of k = 8 g + (i ^
// 1): the order in which operands are summed. What is beyond n or k is code 7 (zero) with absmax 0.
#pragma once

#include <string.h>

#include "kernels/gemm.h"
#include "kernels/generic/pack.h"
#include "kernels/nf4_format.h"

namespace loongforge::kernels {
namespace {

inline constexpr int64_t kNf4Words = kNf4Block / 8;  // of 8 codes, in a block's row

template <int64_t kPanel>
inline constexpr int64_t kNf4BlockBytes = kPanel*(kNf4Block / 2 + 4);

template <int64_t kPanel>
[[maybe_unused]] inline int64_t nf4_panel_bytes(int64_t k) {
  return nf4_blocks(k) * kNf4BlockBytes<kPanel>;
}

// The block that holds (row, col), row a multiple of kPanel.
template <int64_t kPanel>
[[maybe_unused]] inline uint8_t* nf4_block(const PackedWeight& w, int64_t row, int64_t col) {
  return w.data + row / kPanel * nf4_panel_bytes<kPanel>(w.k) +
         col / kNf4Block * kNf4BlockBytes<kPanel>;
}

// One row's part of a block: cols codes of src, zeros behind them.
template <int64_t kPanel>
inline void pack_nf4_row(const uint8_t* src, int64_t cols, float absmax, int64_t row,
                         uint8_t* block) {
  for (int64_t g = 0; g < kNf4Words; ++g) {
    uint8_t word[4] = {0x77, 0x77, 0x77, 0x77};
    const int64_t rest = cols - g * 8;
    const int64_t count = rest < 8 ? rest : 8;
    for (int64_t i = 0; i < count; i += 2) {
      const uint8_t both = src[g * 4 + i / 2];
      word[i / 2] = i + 1 < count ? both : static_cast<uint8_t>((both & 0xF0) | kNf4Zero);
    }
    memcpy(block + (g * kPanel + row) * 4, word, 4);
  }
  memcpy(block + (kNf4Words * kPanel + row) * 4, &absmax, 4);
}

template <int64_t kPanel>
void pack_nf4(const PackedWeight& w, const uint8_t* codes, int64_t ld_codes, const float* absmax,
              int64_t ld_absmax, int64_t row0, int64_t row1) noexcept {
  for (int64_t panel = row0; panel < row1; panel += kPanel) {
    for (int64_t k0 = 0; k0 < w.k; k0 += kNf4Block) {
      uint8_t* block = nf4_block<kPanel>(w, panel, k0);
      const int64_t cols = w.k - k0 < kNf4Block ? w.k - k0 : kNf4Block;
      for (int64_t i = 0; i < kPanel; ++i) {
        const int64_t row = panel - row0 + i;
        if (panel + i < row1) {
          pack_nf4_row<kPanel>(codes + row * ld_codes + k0 / 2, cols,
                               absmax[row * ld_absmax + k0 / kNf4Block], i, block);
        } else {
          pack_nf4_row<kPanel>(nullptr, 0, 0.0f, i, block);
        }
      }
    }
  }
}

// The value at (row, col) of a block, not rounded.
template <int64_t kPanel>
inline float nf4_value(const uint8_t* block, int64_t row, int64_t col) {
  const uint8_t* word = block + (col / 8 * kPanel + row) * 4;
  float absmax;
  memcpy(&absmax, block + (kNf4Words * kPanel + row) * 4, 4);
  return kNf4Values[nf4_code_at(word, col % 8)] * absmax;
}

template <int64_t kPanel>
void gather_nf4(const PackedWeight& w, const int32_t* rows, int64_t count, MatOut out) {
  for (int64_t r = 0; r < count; ++r) {
    const int64_t at = rows[r] % kPanel;
    for (int64_t k = 0; k < w.k; ++k) {
      const uint8_t* block = nf4_block<kPanel>(w, rows[r] - at, k);
      const float x = nf4_value<kPanel>(block, at, k % kNf4Block);
      if (out.elem == Elem::kF32) {
        static_cast<float*>(out.data)[r * out.ld + k] = x;
      } else {
        static_cast<Bf16*>(out.data)[r * out.ld + k].bits = operand_bits(x);
      }
    }
  }
}

}  // namespace
}  // namespace loongforge::kernels
