// Packing and look-up of weight rows, once for every ISA that pads its packed weights.
// Layout provides kPanel (rows of a panel), padded(k) and offset(elem, k_padded, row, col), in
// elements.
#pragma once

#include "kernels/gemm.h"
#include "kernels/generic/fp8_bits.h"
#include "kernels/generic/pack.h"

namespace loongforge::kernels {
namespace {

template <class Layout>
size_t packed_bytes(Elem elem, int64_t n, int64_t k) noexcept {
  const int64_t rows = (n + Layout::kPanel - 1) / Layout::kPanel * Layout::kPanel;
  return static_cast<size_t>(rows) * static_cast<size_t>(Layout::padded(k)) *
         static_cast<size_t>(elem_bytes(elem));
}

// T: words of bits, moved as they are.
template <class Layout, class T>
void pack_rows_of(const PackedWeight& w, const T* src, int64_t ld, int64_t row0, int64_t row1) {
  T* data = reinterpret_cast<T*>(w.data);
  const int64_t k_padded = Layout::padded(w.k);
  const int64_t end = (row1 + Layout::kPanel - 1) / Layout::kPanel * Layout::kPanel;
  // Column by column of a panel: the writes are then nearly in order.
  for (int64_t panel = row0; panel < end; panel += Layout::kPanel) {
    for (int64_t kk = 0; kk < k_padded; ++kk) {
      for (int64_t row = panel; row < panel + Layout::kPanel; ++row) {
        T x = row < row1 && kk < w.k ? src[(row - row0) * ld + kk] : T{0};
        if constexpr (sizeof(T) == 2) x = operand_bits(Bf16{x});
        data[Layout::offset(w.elem, k_padded, row, kk)] = x;
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

template <class Layout>
float packed_value(const PackedWeight& w, int64_t row, int64_t col) {
  const int64_t i = Layout::offset(w.elem, Layout::padded(w.k), row, col);
  if (w.elem == Elem::kF32) return reinterpret_cast<const float*>(w.data)[i];
  if (w.elem == Elem::kBf16) return bf16_value(reinterpret_cast<const Bf16*>(w.data)[i].bits);
  const uint8_t code = w.data[i];
  const int64_t blocks = (w.k + kWeightBlock - 1) / kWeightBlock;
  const int exp = w.scale_exps[row / kWeightBlock * blocks + col / kWeightBlock];
  const uint16_t image = scale_image(fp8_images(w.elem)[code & 0x7F], exp, false);
  return bf16_value(static_cast<uint16_t>(image | (code & 0x80) << 8));
}

template <class Layout>
void gather_rows(const PackedWeight& w, const int32_t* rows, int64_t count, MatOut out) noexcept {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t kk = 0; kk < w.k; ++kk) {
      const float x = packed_value<Layout>(w, rows[i], kk);
      if (out.elem == Elem::kF32) {
        static_cast<float*>(out.data)[i * out.ld + kk] = x;
      } else {
        static_cast<Bf16*>(out.data)[i * out.ld + kk].bits = operand_bits(x);
      }
    }
  }
}

}  // namespace
}  // namespace loongforge::kernels
