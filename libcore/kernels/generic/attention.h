// Attention on any V and tiles: what forward and backward share, and the table that an ISA's
// attention.cpp fills.
//
// Rows of the score matrix are taken in strips of kMr, keys in B panels of kNr, so that a strip
// sees of the causal triangle little more than it needs, in K order. What is skipped would have
// added products with p = 0, and a sum that starts at +0 never becomes -0: skipping changes no bit.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/attention.h"
#include "kernels/generic/strided.h"
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
namespace attn {
namespace {

[[maybe_unused]] inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }
[[maybe_unused]] inline int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }
[[maybe_unused]] inline int64_t round_down(int64_t x, int64_t step) { return x / step * step; }
[[maybe_unused]] inline int64_t round_up(int64_t x, int64_t step) {
  return (x + step - 1) / step * step;
}
[[maybe_unused]] inline int round_up_16(int x) { return (x + 15) & ~15; }

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
  // f(pointer to the element), typed.
  template <class F>
  void typed(F f) const {
    if (elem == Elem::kF32) {
      f(static_cast<const float*>(data));
    } else {
      f(static_cast<const Bf16*>(data));
    }
  }
};

// Rows that are needed soon, asked for one by one between products: the next block's rows are far
// apart, where the CPU does not look for them by itself.
struct RowsAhead {
  const uint8_t* at = nullptr;
  int64_t stride = 0, bytes = 0;
  int64_t left = 0;

  static RowsAhead of(const Plane& first, int64_t width, int64_t count) {
    const int64_t elem = elem_bytes(first.elem);
    return {static_cast<const uint8_t*>(first.data), first.ld * elem, width * elem, count};
  }
  LF_INLINE void ask(int64_t rows) {
    for (; rows > 0 && left > 0; --rows, --left, at += stride)
      for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(at + b, 0, 2);
  }
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

// Keys that rows see of a block, relative to its first.
struct Span {
  int lo = 0, hi = 0;
  bool empty() const { return lo >= hi; }
  static Span of(const ScoreRows& rows, int first, int last, int64_t block, int keys) {
    return {static_cast<int>(greater(rows.lo(first) - block, 0)),
            static_cast<int>(lesser(rows.hi(last) - block, keys))};
  }
};

// The last vector of a row of n: whole when 16 fit, else the part; n is a multiple of 8.
template <class V, class T>
LF_INLINE V load_up_to(const T* p, int64_t left) {
  return left >= 16 ? V::load(p) : V::load_part(p, static_cast<int>(left));
}
template <class V, class T>
LF_INLINE void store_up_to(V x, T* p, int64_t left) {
  if (left >= 16) {
    x.store(p);
  } else {
    x.store_part(p, static_cast<int>(left));
  }
}
// out[0 .. n) = src[0 .. n) * factor, rounded to the element.
template <class V>
inline void scale_row(const float* src, float factor, int64_t n, const Plane& out) {
  const V f = V::set1(factor);
  const auto write = [&](auto* p) {
    for (int64_t i = 0; i < n; i += 16)
      store_up_to(load_up_to<V>(src + i, n - i) * f, p + i, n - i);
  };
  if (out.elem == Elem::kF32) {
    write(static_cast<float*>(out.out()));
  } else {
    write(static_cast<Bf16*>(out.out()));
  }
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

// e^x for x up to a little above 0, as softmax has them: relative error 2e-7, exp(0) = 1. Below -38
// it is e^-38, which is above 2^-55: p is a normal number and an operand that is not flushed, and
// what it adds to sums of 1 and more is lost in their rounding. x = k ln 2 + r, e^r by a degree 5
// minimax polynomial (1.1e-7; its first two coefficients fixed to 1). NaN in x need not give NaN:
// max_of() tells of them.
// kCount vectors, step by step: the steps of one wait for each other.
template <int kCount, class V>
LF_INLINE void exp_probs(V* x) {
  const V magic =
      V::set1(12582912.0f);  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  V shifted[kCount], p[kCount];
#define LF_EACH _Pragma("GCC unroll 8") for (int i = 0; i < kCount; ++i)
  LF_EACH x[i] = V::max(x[i], V::set1(-38.0f));
  LF_EACH shifted[i] = V::fma(x[i], V::set1(0x1.715476p+0f), magic);
  LF_EACH x[i] = V::fma(shifted[i] - magic, V::set1(-0x1.62e430p-1f), x[i]);
  LF_EACH p[i] = V::fma(V::set1(0x1.106250p-7f), x[i], V::set1(0x1.572a64p-5f));
  LF_EACH p[i] = V::fma(p[i], x[i], V::set1(0x1.5557b0p-3f));
  LF_EACH p[i] = V::fma(p[i], x[i], V::set1(0x1.fffdfcp-2f));
  LF_EACH p[i] = V::fma(p[i], x[i], V::set1(1.0f));
  LF_EACH p[i] = V::fma(p[i], x[i], V::set1(1.0f));
  LF_EACH x[i] = V::add_int(p[i], V::template shift_left<23>(shifted[i]));
#undef LF_EACH
}
template <class V>
LF_INLINE V exp_prob(V x) {
  exp_probs<1>(&x);
  return x;
}

template <class V>
LF_INLINE V keep_lanes(V x, int from, int to) {
  return V::select_first(from, V::zero(), V::select_first(to, x, V::zero()));
}
template <class T>
LF_INLINE void clear(T* p, int from, int to) {
  if (from < to) memset(p + from, 0, sizeof(T) * static_cast<size_t>(to - from));
}

// Values as operands in memory. Rows: [row][ld] operands. A panel of B: pairs of k, each the odd
// and the even row of kNr (float), or kNr words of (even, odd) (Bf16).
template <class V, class Operand, bool kRounds>
struct Operands;

// The same as x.to_bf16() for 0 and |x| of 2^-55 to 2^100. The product's rounding to 24 bits is the
// one sought: of x = (H 2^16 + L) ulps it makes (x - H) 2^16 - L, a multiple of 2^16, and where L
// is the tie, x is even, so that x - H is even where H is. The rest is exact.
template <class V>
LF_INLINE V round_prob(V x) {
  return V::fma(x, V::set1(65536.0f), x * V::set1(-65535.0f));
}
// The same for all |x| below 2^100; above, and for NaN, it is not finite.
template <class V>
LF_INLINE V round_gradient(V x) {
  return V::select_lt(V::abs(x), V::set1(0x1p-55f), V::zero(), round_prob(x));
}
template <class V>
LF_INLINE V flush_image(V x) {
  return V::select_lt(V::abs(x), V::set1(0x1p-55f), V::zero(), x);
}
template <class V>
LF_INLINE V round_copy(V x, const float*) {
  return x.to_bf16();
}
template <class V>
LF_INLINE V round_copy(V x, const Bf16*) {
  return flush_image(x);
}

template <class V, bool kRounds>
struct Operands<V, float, kRounds> {
  static LF_INLINE V gradient(V x) { return kRounds ? round_gradient(x) : x; }
  static LF_INLINE V prob(V x) { return kRounds ? round_prob(x) : x; }
  template <class T>
  static LF_INLINE V copy(V x, const T* source) {
    return kRounds ? round_copy(x, source) : x;
  }
  // Rounded values.
  static LF_INLINE void store(V x, float* p) { x.store(p); }
  // Columns [j, j + 16) of the pair at `pair`.
  template <int kNr>
  static LF_INLINE void store_pair(V even, V odd, float* pair, int j) {
    odd.store(pair + j);
    even.store(pair + kNr + j);
  }
  // A(i, k) = data[i * ld + k]
  static StridedA by_rows(const float* data, int64_t ld) { return {data, ld, 2, 1, 0}; }
};

template <class V>
struct Operands<V, Bf16, true> {
  static LF_INLINE V gradient(V x) { return round_gradient(x); }
  static LF_INLINE V prob(V x) { return round_prob(x); }
  template <class T>
  static LF_INLINE V copy(V x, const T* source) {
    return round_copy(x, source);
  }
  static LF_INLINE void store(V x, Bf16* p) { x.store(p); }
  template <int kNr>
  static LF_INLINE void store_pair(V even, V odd, Bf16* pair, int j) {
    const V words = V::bit_or(odd, V::template shift_right<16>(even));
    words.store(reinterpret_cast<float*>(pair) + j);
  }
  static StridedA by_rows(const Bf16* data, int64_t ld) { return {data, ld / 2, 1, 0, 0}; }
};

// Copies into operands.
template <class V, class Tile, bool kRounds>
struct Pack {
  using Operand = typename Tile::Operand;
  using Ops = Operands<V, Operand, kRounds>;
  static constexpr int kNr = Tile::kNr;
  static constexpr int64_t kRowsAhead = 16;

  // dst[row][ld]
  static void rows(const Plane& src, int64_t count, int64_t dim, Operand* dst, int64_t ld) {
    src.typed([&](auto* p) {
      for (int64_t i = 0; i < count; ++i)
        for (int64_t d = 0; d < dim; d += 16)
          Ops::store(Ops::copy(load_up_to<V>(p + i * src.ld + d, dim - d), p), dst + i * ld + d);
    });
  }
  // Panels of columns: B(k, j) = src[k, j]
  static void panels(const Plane& src, int64_t cols, int64_t k, Operand* dst) {
    const auto panel = static_cast<int64_t>(Tile::b_panel_elems(k));
    RowsAhead ahead = RowsAhead::of(src.shifted(0, 0), cols, k);
    ahead.ask(kRowsAhead);
    src.typed([&](auto* p) {
      for (int64_t kk = 0; kk < k; kk += 2) {
        ahead.ask(2);
        const auto* even = p + kk * src.ld;
        const auto* odd = even + src.ld;
        for (int64_t j = 0; j < round_up(cols, kNr); j += 16) {
          const int64_t left = greater(cols - j, 0);
          const V x = load_up_to<V>(even + j, left),
                  y = kk + 1 < k ? load_up_to<V>(odd + j, left) : V::zero();
          Ops::template store_pair<kNr>(Ops::copy(x, p), Ops::copy(y, p),
                                        dst + j / kNr * panel + kk * kNr,
                                        static_cast<int>(j % kNr));
        }
      }
    });
  }
  // B(k, j) = src[j, k]
  static void panels_t(const Plane& src, int64_t cols, int64_t k, Operand* dst) {
    src.typed([&](auto* p) {
      for (int64_t j = 0; j < cols; j += kNr, dst += Tile::b_panel_elems(k))
        Tile::pack_b_t(p + j * src.ld, src.ld, static_cast<int>(lesser(kNr, cols - j)), k, dst);
    });
  }
  static int64_t panels_elems(int64_t cols, int64_t k) {
    return (cols + kNr - 1) / kNr * static_cast<int64_t>(Tile::b_panel_elems(k));
  }
};

}  // namespace
}  // namespace attn
}  // namespace loongforge::kernels
