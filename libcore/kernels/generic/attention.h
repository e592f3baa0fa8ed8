// Attention on any V and tiles: what forward and backward share, and the table that an ISA's
// attention.cpp fills.
//
// Rows of the score matrix are packed in strips of Tile::kMr (A panels), keys in panels of
// Tile::kNr (B panels), so that a strip sees of the causal triangle only the panels that it needs,
// in K order. What is skipped would have added products with p = 0, and a sum that starts at +0
// never becomes -0: skipping changes no bit.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/attention.h"
#include "kernels/types.h"

namespace loongforge::kernels {

struct AttentionTable {
  size_t (*scratch_bytes)(const AttnJob& job, int64_t max_kv_len, bool backward) noexcept;
  void (*forward)(const AttnJob& job, const AttnDoc& doc, int64_t kv_head, int64_t q0, int64_t q1,
                  void* scratch) noexcept;
  // dQ of queries [q0, q1) where want_q, dK and dV of keys [k0, k1) where want_kv.
  void (*backward)(const AttnJob& job, const AttnDoc& doc, int64_t kv_head, int64_t q0, int64_t q1,
                   int64_t k0, int64_t k1, bool want_q, bool want_kv, void* scratch) noexcept;
};

// Unnamed: a copy per translation unit, because each is compiled for another ISA.
namespace {

[[maybe_unused]] inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
[[maybe_unused]] inline int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }
[[maybe_unused]] inline int64_t round_down(int64_t x, int64_t step) { return x / step * step; }
[[maybe_unused]] inline int64_t round_up(int64_t x, int64_t step) {
  return (x + step - 1) / step * step;
}

// Cuts scratch into pieces of whole cache lines; without a base it only counts.
struct ScratchCutter {
  uint8_t* base;
  size_t used = 0;

  template <class T>
  T* take(int64_t count) {
    T* piece = base != nullptr ? reinterpret_cast<T*>(base + used) : nullptr;
    used += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return piece;
  }
};

// One element of a matrix view, and the strides from it.
struct Plane {
  const void* data;
  int64_t ld;
  Elem elem;

  static Plane at(const Mat& m, int64_t row, int64_t col) {
    return {static_cast<const uint8_t*>(m.data) + (row * m.ld + col) * elem_bytes(m.elem), m.ld,
            m.elem};
  }
  static Plane at(const MatOut& m, int64_t row, int64_t col) {
    return at(Mat{m.data, m.ld, m.elem}, row, col);
  }
  Plane shifted(int64_t row, int64_t col) const { return at(Mat{data, ld, elem}, row, col); }
  Plane with_ld(int64_t new_ld) const { return {data, new_ld, elem}; }
  void* out() const { return const_cast<void*>(data); }
};

// The score rows worked on together: consecutive queries of one head (step 1), or one query in
// consecutive heads (step 0). Row r sees keys [lo(r), hi(r)); both never decrease with r.
struct ScoreRows {
  int count;
  int64_t position, step;
  int64_t window;
  int64_t key0, key1;  // keys outside are left out (the parts of a split)

  int64_t hi(int r) const { return lesser(position + r * step + 1, key1); }
  int64_t lo(int r) const {
    const int64_t end = position + r * step + 1;
    return greater(window > 0 ? end - window : 0, key0);
  }
};

template <class V>
LF_INLINE V load_n(const void* data, Elem elem, int64_t i, int n) {
  return elem == Elem::kF32 ? V::load_part(static_cast<const float*>(data) + i, n)
                            : V::load_part(static_cast<const Bf16*>(data) + i, n);
}
template <class V>
LF_INLINE void store_n(V x, void* data, Elem elem, int64_t i, int n) {
  if (elem == Elem::kF32) {
    x.store_part(static_cast<float*>(data) + i, n);
  } else {
    x.store_part(static_cast<Bf16*>(data) + i, n);
  }
}
// out[0 .. n) = src[0 .. n) * factor, rounded to the element.
template <class V>
inline void scale_row(const float* src, float factor, int64_t n, void* out, Elem elem) {
  const V f = V::set1(factor);
  int64_t i = 0;
  if (elem == Elem::kF32) {
    for (; i + 16 <= n; i += 16) (V::load(src + i) * f).store(static_cast<float*>(out) + i);
  } else {
    for (; i + 16 <= n; i += 16) (V::load(src + i) * f).store(static_cast<Bf16*>(out) + i);
  }
  if (i < n)
    store_n(V::load_part(src + i, static_cast<int>(n - i)) * f, out, elem, i,
            static_cast<int>(n - i));
}

// ln x for normal x > 0, within 2 ulp or 1e-7; NaN passes. x = 2^e m with m in [sqrt(1/2),
// sqrt(2)), ln m = 2 atanh((m - 1) / (m + 1)).
template <class V>
inline V natural_log(V x) {
  const V one = V::set1(1.0f);
  const V m1 = V::bit_or(V::bit_and(x, V::set1_bits(0x007FFFFFu)), one);
  const V big =
      V::set1(8388608.0f);  // 2^23: an integer below it, or-ed into the low bits, is added
  const V e1 = (V::bit_or(V::template shift_right<23>(x), big) - big) - V::set1(127.0f);
  const V limit = V::set1(1.41421356f);
  const V m = V::select_lt(m1, limit, m1, m1 * V::set1(0.5f));
  const V e = V::select_lt(m1, limit, e1, e1 + one);
  const V s = (m - one) / (m + one);
  const V z = s * s;
  V p = V::set1(2.0f / 11);
  p = V::fma(p, z, V::set1(2.0f / 9));
  p = V::fma(p, z, V::set1(2.0f / 7));
  p = V::fma(p, z, V::set1(2.0f / 5));
  p = V::fma(p, z, V::set1(2.0f / 3));
  p = V::fma(p, z, V::set1(2.0f));
  return V::fma(x, V::zero(), V::fma(e, V::set1(0.693147181f), s * p));
}

// Packing by the element type of the source.
template <class Tile>
struct Packer {
  using Operand = typename Tile::Operand;
  static constexpr int kMr = Tile::kMr, kNr = Tile::kNr;

  template <class F>
  static void typed(const Plane& p, F fn) {
    if (p.elem == Elem::kF32) {
      fn(static_cast<const float*>(p.data));
    } else {
      fn(static_cast<const Bf16*>(p.data));
    }
  }
  // Strips of rows: A(i, kk) = src[i, kk], panel after panel.
  static void strips(const Plane& src, int64_t rows, int64_t k, Operand* dst) {
    typed(src, [&](auto* p) {
      for (int64_t i = 0; i < rows; i += kMr, dst += Tile::a_panel_elems(k))
        Tile::pack_a(p + i * src.ld, src.ld, static_cast<int>(lesser(kMr, rows - i)), k, dst);
    });
  }
  // A(i, kk) = src[kk, i]
  static void strips_t(const Plane& src, int64_t rows, int64_t k, Operand* dst) {
    typed(src, [&](auto* p) {
      for (int64_t i = 0; i < rows; i += kMr, dst += Tile::a_panel_elems(k))
        Tile::pack_a_t(p + i, src.ld, static_cast<int>(lesser(kMr, rows - i)), k, dst);
    });
  }
  // Panels of columns: B(kk, j) = src[kk, j]
  static void panels(const Plane& src, int64_t cols, int64_t k, Operand* dst) {
    typed(src, [&](auto* p) {
      for (int64_t j = 0; j < cols; j += kNr, dst += Tile::b_panel_elems(k))
        Tile::pack_b(p + j, src.ld, static_cast<int>(lesser(kNr, cols - j)), k, dst);
    });
  }
  // B(kk, j) = src[j, kk]
  static void panels_t(const Plane& src, int64_t cols, int64_t k, Operand* dst) {
    typed(src, [&](auto* p) {
      for (int64_t j = 0; j < cols; j += kNr, dst += Tile::b_panel_elems(k))
        Tile::pack_b_t(p + j * src.ld, src.ld, static_cast<int>(lesser(kNr, cols - j)), k, dst);
    });
  }
  static int64_t strips_elems(int64_t rows, int64_t k) {
    return (rows + kMr - 1) / kMr * static_cast<int64_t>(Tile::a_panel_elems(k));
  }
  static int64_t panels_elems(int64_t cols, int64_t k) {
    return (cols + kNr - 1) / kNr * static_cast<int64_t>(Tile::b_panel_elems(k));
  }
};

// How P and dS are kept between the softmax and their packing.
template <bool kRounded>
struct ProbElem {
  using Type = float;
};
template <>
struct ProbElem<true> {
  using Type = Bf16;
};

// The vectors of 16 that cover [lo, hi): full(j) for whole ones, part(j, from, to) where only those
// lanes count.
template <class Full, class Part>
LF_INLINE void for_vectors(int lo, int hi, Full full, Part part) {
  int j = lo & ~15;
  if (j < lo && j < hi) {
    part(j, lo - j, hi - j < 16 ? hi - j : 16);
    j += 16;
  }
  for (; j + 16 <= hi; j += 16) full(j);
  if (j < hi) part(j, 0, hi - j);
}
template <class V>
LF_INLINE V keep_lanes(V x, int from, int to, V other) {
  return V::select_first(from, other, V::select_first(to, x, other));
}
template <class T>
LF_INLINE void clear(T* p, int from, int to) {
  if (from < to) memset(p + from, 0, sizeof(T) * static_cast<size_t>(to - from));
}

}  // namespace
}  // namespace loongforge::kernels
