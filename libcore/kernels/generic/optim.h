// Optimizer kernels on any V, D.
#pragma once

#include "kernels/generic/lanes.h"
#include "kernels/generic/tables.h"

namespace loongforge::kernels::generic {
namespace {

template <class V>
void optim_adamw(const AdamW& h, float* param, float* m, float* v, const float* grad,
                 int64_t n) noexcept {
  const V decay = V::set1(static_cast<float>(1.0 - h.lr * h.weight_decay));
  const V beta1 = V::set1(static_cast<float>(h.beta1));
  const V rest1 = V::set1(static_cast<float>(1.0 - h.beta1));
  const V beta2 = V::set1(static_cast<float>(h.beta2));
  const V rest2 = V::set1(static_cast<float>(1.0 - h.beta2));
  const V step = V::set1(static_cast<float>(h.lr / h.bias1));
  const V unbias2 = V::set1(static_cast<float>(1.0 / h.sqrt_bias2));
  const V eps = V::set1(static_cast<float>(h.eps));
  const V factor = V::set1(static_cast<float>(h.grad_scale));
  for_lanes(n, [&](int64_t j, auto lanes) {
    const V g = load<V>(grad + j, lanes) * factor;
    const V m1 = V::fma(beta1, load<V>(m + j, lanes), rest1 * g);
    const V v1 = V::fma(beta2, load<V>(v + j, lanes), rest2 * g * g);
    store(m1, m + j, lanes);
    store(v1, v + j, lanes);
    const V update = step * m1 / V::fma(V::sqrt(v1), unbias2, eps);
    store(load<V>(param + j, lanes) * decay - update, param + j, lanes);
  });
}

template <class V>
void optim_accumulate(float* sum, const float* x, int64_t n) noexcept {
  for_lanes(n, [&](int64_t j, auto lanes) {
    store(load<V>(sum + j, lanes) + load<V>(x + j, lanes), sum + j, lanes);
  });
}

template <class V>
void optim_scale(float* x, float factor, int64_t n) noexcept {
  const V f = V::set1(factor);
  for_lanes(n, [&](int64_t j, auto lanes) { store(load<V>(x + j, lanes) * f, x + j, lanes); });
}

template <class V, class D>
double optim_sum_squares(const float* x, int64_t n) noexcept {
  D sum = D::zero();
  for_lanes(n, [&](int64_t j, auto lanes) { sum.add_square(load<V>(x + j, lanes)); });
  return sum.reduce_add();
}

template <class V, class D>
double optim_sum(const float* x, int64_t n) noexcept {
  D sum = D::zero();
  for_lanes(n, [&](int64_t j, auto lanes) { sum.add(load<V>(x + j, lanes)); });
  return sum.reduce_add();
}

// Magnitudes compared as integers: those of infinity and NaN are the largest.
template <class V>
bool optim_all_finite(const void* x, Elem elem, int64_t n) noexcept {
  V largest = V::zero();
  with_elem(elem, [&]<class X>(Type<X>) {
    const X* p = static_cast<const X*>(x);
    for_lanes(n, [&](int64_t j, auto lanes) {
      largest = V::max_int(largest, V::abs(load<V>(p + j, lanes)));
    });
  });
  return largest.reduce_max_int() < 0x7F800000u;
}

template <class V, class D>
constexpr OptimTable optim_table() {
  return {optim_adamw<V>,          optim_accumulate<V>, optim_scale<V>,
          optim_sum_squares<V, D>, optim_sum<V, D>,     optim_all_finite<V>};
}

}  // namespace
}  // namespace loongforge::kernels::generic
