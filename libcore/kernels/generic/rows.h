// Row-wise kernels of rows.h on any V. Algorithms are single passes over rows that fit the cache;
// each row's sums run in the 16 lanes, in order.
#pragma once

#include <math.h>
#include <string.h>

#include "kernels/generic/lanes.h"
#include "kernels/generic/math_vec.h"
#include "kernels/generic/tables.h"

namespace loongforge::kernels::generic {
namespace {

template <class V, class X, class Y>
void norm_forward_of(const Mat& x, const float* weight, float eps, int64_t cols, const MatOut& y,
                     float* rstd, int64_t r0, int64_t r1) {
  for (int64_t r = r0; r < r1; ++r) {
    const X* xr = row_of<X>(x, r);
    Y* yr = row_of<Y>(y, r);
    V sum = V::zero();
    for_lanes(cols, [&](int64_t j, auto lanes) {
      const V v = load<V>(xr + j, lanes);
      sum = V::fma(v, v, sum);
    });
    const float inverse = 1.0f / sqrtf(sum.reduce_add() / static_cast<float>(cols) + eps);
    if (rstd != nullptr) rstd[r] = inverse;
    const V factor = V::set1(inverse);
    for_lanes(cols, [&](int64_t j, auto lanes) {
      store(load<V>(xr + j, lanes) * factor * load<V>(weight + j, lanes), yr + j, lanes);
    });
  }
}

template <class V>
void rows_norm_forward(Mat x, const float* weight, float eps, int64_t cols, MatOut y, float* rstd,
                       int64_t r0, int64_t r1) noexcept {
  with_elem(x.elem, [&]<class X>(Type<X>) {
    with_elem(y.elem, [&]<class Y>(Type<Y>) {
      norm_forward_of<V, X, Y>(x, weight, eps, cols, y, rstd, r0, r1);
    });
  });
}

// With n = x * rstd and g = dy * weight:  dx = rstd * (g - n * mean(g * n)),  d_weight = sum over
// rows of dy * n.
template <class V, class G, class X, class R, class Y>
void norm_backward_of(const Mat& dy, const Mat& x, const float* weight, const float* rstd,
                      int64_t cols, const Mat& residual, const MatOut& dx, float* blocks,
                      int64_t r0, int64_t r1) {
  for (int64_t r = r0; r < r1; ++r) {
    const G* gr = row_of<G>(dy, r);
    const X* xr = row_of<X>(x, r);
    Y* out = row_of<Y>(dx, r);
    const R* rest = residual.data != nullptr ? row_of<R>(residual, r) : nullptr;
    float* d_weight = blocks != nullptr ? blocks + r / kTokenBlock * cols : nullptr;
    if (d_weight != nullptr && r % kTokenBlock == 0)
      memset(d_weight, 0, sizeof(float) * static_cast<size_t>(cols));
    const V factor = V::set1(rstd[r]);
    V sum = V::zero();
    for_lanes(cols, [&](int64_t j, auto lanes) {
      const V t = load<V>(gr + j, lanes) * (load<V>(xr + j, lanes) * factor);
      sum = V::fma(t, load<V>(weight + j, lanes), sum);
      if (d_weight != nullptr) store(load<V>(d_weight + j, lanes) + t, d_weight + j, lanes);
    });
    const V mean = V::set1(sum.reduce_add() / static_cast<float>(cols));
    for_lanes(cols, [&](int64_t j, auto lanes) {
      const V g = load<V>(gr + j, lanes) * load<V>(weight + j, lanes);
      V d = factor * (g - load<V>(xr + j, lanes) * factor * mean);
      if (rest != nullptr) d = load<V>(rest + j, lanes) + d;
      store(d, out + j, lanes);
    });
  }
}

template <class V>
void rows_norm_backward(Mat dy, Mat x, const float* weight, const float* rstd, int64_t cols,
                        Mat residual, MatOut dx, float* blocks, int64_t r0, int64_t r1) noexcept {
  with_elem(dy.elem, [&]<class G>(Type<G>) {
    with_elem(x.elem, [&]<class X>(Type<X>) {
      with_elem(dx.elem, [&]<class Y>(Type<Y>) {
        with_elem(residual.elem, [&]<class R>(Type<R>) {
          norm_backward_of<V, G, X, R, Y>(dy, x, weight, rstd, cols, residual, dx, blocks, r0, r1);
        });
      });
    });
  });
}

template <class V>
void rows_sum_blocks(const float* blocks, int64_t n_blocks, int64_t cols, float* out,
                     bool accumulate, int64_t c0, int64_t c1) noexcept {
  for_lanes(c1 - c0, [&](int64_t j, auto lanes) {
    V sum = accumulate ? load<V>(out + c0 + j, lanes) : V::zero();
    for (int64_t b = 0; b < n_blocks; ++b) sum = sum + load<V>(blocks + b * cols + c0 + j, lanes);
    store(sum, out + c0 + j, lanes);
  });
}

// Asks for the same place of the next row: where rows are parts of wider ones the CPU begins each
// anew. Past the last row it asks in vain, which does no harm.
template <class T>
LF_INLINE void ask_next_row(const T* p, const Mat& m) {
  __builtin_prefetch(p + m.ld, 0, 2);
}

template <class V>
void rows_swiglu_forward(Mat gate, Mat up, int64_t cols, MatOut out, int64_t r0,
                         int64_t r1) noexcept {
  with_elem(gate.elem, [&]<class X>(Type<X>) {
    with_elem(out.elem, [&]<class Y>(Type<Y>) {
      for (int64_t r = r0; r < r1; ++r) {
        const X* gr = row_of<X>(gate, r);
        const X* ur = row_of<X>(up, r);
        Y* yr = row_of<Y>(out, r);
        for_lanes(cols, [&](int64_t j, auto lanes) {
          ask_next_row(gr + j, gate);
          ask_next_row(ur + j, up);
          const V g = load<V>(gr + j, lanes);
          store(g * sigmoid(g) * load<V>(ur + j, lanes), yr + j, lanes);
        });
      }
    });
  });
}

// silu'(g) = s + g s (1 - s), s = sigmoid(g).
template <class V, class D, class X, class Y>
void swiglu_backward_of(const Mat& d_out, const Mat& gate, const Mat& up, int64_t cols,
                        const MatOut& d_gate, const MatOut& d_up, int64_t r0, int64_t r1) {
  for (int64_t r = r0; r < r1; ++r) {
    const D* dr = row_of<D>(d_out, r);
    const X* gr = row_of<X>(gate, r);
    const X* ur = row_of<X>(up, r);
    Y* ar = row_of<Y>(d_gate, r);
    Y* br = row_of<Y>(d_up, r);
    for_lanes(cols, [&](int64_t j, auto lanes) {
      ask_next_row(dr + j, d_out);
      ask_next_row(gr + j, gate);
      ask_next_row(ur + j, up);
      const V d = load<V>(dr + j, lanes);
      const V g = load<V>(gr + j, lanes);
      const V u = load<V>(ur + j, lanes);
      const V s = sigmoid(g);
      const V silu = g * s;
      const V slope = V::fma(silu, V::set1(1.0f) - s, s);
      store(d * u * slope, ar + j, lanes);
      store(d * silu, br + j, lanes);
    });
  }
}

template <class V>
void rows_swiglu_backward(Mat d_out, Mat gate, Mat up, int64_t cols, MatOut d_gate, MatOut d_up,
                          int64_t r0, int64_t r1) noexcept {
  with_elem(d_out.elem, [&]<class D>(Type<D>) {
    with_elem(gate.elem, [&]<class X>(Type<X>) {
      with_elem(d_gate.elem, [&]<class Y>(Type<Y>) {
        swiglu_backward_of<V, D, X, Y>(d_out, gate, up, cols, d_gate, d_up, r0, r1);
      });
    });
  });
}

template <class V, class X, class Y>
void rope_of(const Mat& x, const MatOut& y, int64_t heads, int64_t head_dim,
             const int32_t* positions, const float* cos, const float* sin, bool inverse, int64_t r0,
             int64_t r1) {
  const int64_t half = head_dim / 2;
  const V sign = V::set1(inverse ? -1.0f : 1.0f);
  for (int64_t r = r0; r < r1; ++r) {
    const float* c_row = cos + positions[r] * half;
    const float* s_row = sin + positions[r] * half;
    for (int64_t h = 0; h < heads; ++h) {
      const X* first = row_of<X>(x, r) + h * head_dim;
      Y* out = row_of<Y>(y, r) + h * head_dim;
      for_lanes(half, [&](int64_t j, auto lanes) {
        const V a = load<V>(first + j, lanes);
        const V b = load<V>(first + half + j, lanes);
        const V c = load<V>(c_row + j, lanes);
        const V s = load<V>(s_row + j, lanes) * sign;
        store(a * c - b * s, out + j, lanes);
        store(b * c + a * s, out + half + j, lanes);
      });
    }
  }
}

template <class V>
void rows_rope(Mat x, MatOut y, int64_t heads, int64_t head_dim, const int32_t* positions,
               const float* cos, const float* sin, bool inverse, int64_t r0, int64_t r1) noexcept {
  with_elem(x.elem, [&]<class X>(Type<X>) {
    with_elem(y.elem, [&]<class Y>(Type<Y>) {
      rope_of<V, X, Y>(x, y, heads, head_dim, positions, cos, sin, inverse, r0, r1);
    });
  });
}

template <class V>
void rows_add(Mat a, Mat b, int64_t cols, MatOut y, int64_t r0, int64_t r1) noexcept {
  with_elem(a.elem, [&]<class A>(Type<A>) {
    with_elem(y.elem, [&]<class Y>(Type<Y>) {
      if (b.data == nullptr) {
        for (int64_t r = r0; r < r1; ++r) {
          const A* ar = row_of<A>(a, r);
          Y* yr = row_of<Y>(y, r);
          for_lanes(cols,
                    [&](int64_t j, auto lanes) { store(load<V>(ar + j, lanes), yr + j, lanes); });
        }
        return;
      }
      with_elem(b.elem, [&]<class B>(Type<B>) {
        for (int64_t r = r0; r < r1; ++r) {
          const A* ar = row_of<A>(a, r);
          const B* br = row_of<B>(b, r);
          Y* yr = row_of<Y>(y, r);
          for_lanes(cols, [&](int64_t j, auto lanes) {
            store(load<V>(ar + j, lanes) + load<V>(br + j, lanes), yr + j, lanes);
          });
        }
      });
    });
  });
}

LF_INLINE uint32_t mask_bits(const uint8_t* p, Full) {
  return p[0] | static_cast<uint32_t>(p[1]) << 8;
}
LF_INLINE uint32_t mask_bits(const uint8_t* p, Part part) {
  return p[0] | (part.n > 8 ? static_cast<uint32_t>(p[1]) << 8 : 0u);
}

template <class V>
void rows_apply_mask(Mat x, const uint8_t* mask, int64_t mask_ld, float scale, int64_t cols,
                     MatOut out, int64_t r0, int64_t r1) noexcept {
  const V factor = V::set1(scale);
  with_elem(x.elem, [&]<class X>(Type<X>) {
    with_elem(out.elem, [&]<class Y>(Type<Y>) {
      for (int64_t r = r0; r < r1; ++r) {
        const X* xr = row_of<X>(x, r);
        const uint8_t* mr = mask + r * mask_ld;
        Y* yr = row_of<Y>(out, r);
        for_lanes(cols, [&](int64_t j, auto lanes) {
          const V kept = load<V>(xr + j, lanes) * factor;
          store(V::select_bits(mask_bits(mr + j / 8, lanes), kept, V::zero()), yr + j, lanes);
        });
      }
    });
  });
}

template <class V>
constexpr RowsTable rows_table() {
  return {
      rows_norm_forward<V>,    rows_norm_backward<V>, rows_sum_blocks<V>, rows_swiglu_forward<V>,
      rows_swiglu_backward<V>, rows_rope<V>,          rows_add<V>,        rows_apply_mask<V>};
}

}  // namespace
}  // namespace loongforge::kernels::generic
