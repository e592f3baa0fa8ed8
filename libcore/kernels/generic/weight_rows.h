// Packing and look-up of weight rows, once for every ISA.
//
// Layout provides kPanel (rows of a panel), padded(k), row_offset(elem, k_padded, row) and
// col_offset(elem, col), in elements, where element (row, col) stands at the sum of both and
// col_offset(col + 64) == col_offset(col) + a constant.
#pragma once

#include "kernels/gemm.h"
#include "kernels/generic/fp8_bits.h"
#include "kernels/generic/nf4.h"
#include "kernels/generic/pack.h"

namespace loongforge::kernels {
namespace {

inline constexpr int64_t kOffsetBlock = 64;

// Offsets of a block of columns, which then repeat.
template <class Layout>
struct ColumnOffsets {
  int32_t of[kOffsetBlock];
  int64_t block;
  explicit ColumnOffsets(Elem elem)
      : block(Layout::col_offset(elem, kOffsetBlock) - Layout::col_offset(elem, 0)) {
    for (int64_t i = 0; i < kOffsetBlock; ++i)
      of[i] = static_cast<int32_t>(Layout::col_offset(elem, i));
  }
};

template <class Layout>
size_t packed_bytes(Elem elem, int64_t n, int64_t k) noexcept {
  const int64_t rows = (n + Layout::kPanel - 1) / Layout::kPanel * Layout::kPanel;
  if (elem == Elem::kNf4)
    return static_cast<size_t>(nf4_panel_bytes<Layout::kPanel>(k) * (rows / Layout::kPanel));
  return static_cast<size_t>(rows) * static_cast<size_t>(Layout::padded(k)) *
         static_cast<size_t>(elem_bytes(elem));
}

// T: words of bits, moved as they are.
template <class Layout, class T>
void pack_rows_of(const PackedWeight& w, const T* src, int64_t ld, int64_t row0, int64_t row1) {
  T* data = reinterpret_cast<T*>(w.data);
  const ColumnOffsets<Layout> offsets(w.elem);
  const int64_t k_padded = Layout::padded(w.k);
  const int64_t end = (row1 + Layout::kPanel - 1) / Layout::kPanel * Layout::kPanel;
  // Block by block, so that the scattered writes stay in L1.
  for (int64_t panel = row0; panel < end; panel += Layout::kPanel) {
    for (int64_t k0 = 0; k0 < k_padded; k0 += kOffsetBlock) {
      const int64_t stored = k_padded - k0 < kOffsetBlock ? k_padded - k0 : kOffsetBlock;
      for (int64_t row = panel; row < panel + Layout::kPanel; ++row) {
        T* to =
            data + Layout::row_offset(w.elem, k_padded, row) + k0 / kOffsetBlock * offsets.block;
        const int64_t rest = row < row1 ? w.k - k0 : 0;
        const int64_t valid = rest < stored ? rest : stored;
        const T* from = valid > 0 ? src + (row - row0) * ld + k0 : nullptr;
        for (int64_t i = 0; i < valid; ++i) {
          T x = from[i];
          if constexpr (sizeof(T) == 2) x = operand_bits(Bf16{x});
          to[offsets.of[i]] = x;
        }
        for (int64_t i = valid > 0 ? valid : 0; i < stored; ++i) to[offsets.of[i]] = T{0};
      }
    }
  }
}

template <class Layout>
void pack_rows(const PackedWeight& w, const void* src, int64_t ld, int64_t row0,
               int64_t row1) noexcept {
  switch (elem_bytes(w.elem)) {
    case 1:
      return pack_rows_of<Layout>(w, static_cast<const uint8_t*>(src), ld, row0, row1);
    case 2:
      return pack_rows_of<Layout>(w, static_cast<const uint16_t*>(src), ld, row0, row1);
    default:
      return pack_rows_of<Layout>(w, static_cast<const uint32_t*>(src), ld, row0, row1);
  }
}

// `count` values of a row from column k0, a multiple of 64; offset: of (row, k0).
template <class Layout>
void load_values(const PackedWeight& w, const ColumnOffsets<Layout>& offsets, int64_t offset,
                 int64_t count, int exp, float* out) {
  if (w.elem == Elem::kF32) {
    const float* data = reinterpret_cast<const float*>(w.data) + offset;
    for (int64_t i = 0; i < count; ++i) out[i] = data[offsets.of[i]];
  } else if (w.elem == Elem::kBf16) {
    const Bf16* data = reinterpret_cast<const Bf16*>(w.data) + offset;
    for (int64_t i = 0; i < count; ++i) out[i] = bf16_value(data[offsets.of[i]].bits);
  } else {
    const uint16_t* images = fp8_images(w.elem);
    const float scale = bf16_value(static_cast<uint16_t>((exp + 127) << 7));
    for (int64_t i = 0; i < count; ++i) {
      const uint8_t code = w.data[offset + offsets.of[i]];
      out[i] = bf16_value(static_cast<uint16_t>(images[code & 0x7F] | (code & 0x80) << 8)) * scale;
    }
  }
}

template <class Layout>
void gather_rows(const PackedWeight& w, const int32_t* rows, int64_t count, MatOut out) noexcept {
  if (w.elem == Elem::kNf4) return gather_nf4<Layout::kPanel>(w, rows, count, out);
  const ColumnOffsets<Layout> offsets(w.elem);
  const int64_t k_padded = Layout::padded(w.k);
  const int64_t blocks = (w.k + kWeightBlock - 1) / kWeightBlock;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t row = rows[r];
    const int64_t first = Layout::row_offset(w.elem, k_padded, row);
    const bool fp8 = elem_bytes(w.elem) == 1;
    for (int64_t k0 = 0; k0 < w.k; k0 += kOffsetBlock) {
      const int64_t n = w.k - k0 < kOffsetBlock ? w.k - k0 : kOffsetBlock;
      const int exp = fp8 ? w.scale_exps[row / kWeightBlock * blocks + k0 / kWeightBlock] : 0;
      float values[kOffsetBlock];
      const bool direct = out.elem == Elem::kF32;
      float* to = direct ? static_cast<float*>(out.data) + r * out.ld + k0 : values;
      load_values<Layout>(w, offsets, first + k0 / kOffsetBlock * offsets.block, n, exp, to);
      if (direct) continue;
      Bf16* rounded = static_cast<Bf16*>(out.data) + r * out.ld + k0;
      for (int64_t i = 0; i < n; ++i) rounded[i].bits = operand_bits(values[i]);
    }
  }
}

}  // namespace
}  // namespace loongforge::kernels
