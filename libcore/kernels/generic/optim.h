// Optimizer kernels on any V, D.
#pragma once

#include <string.h>

#include "kernels/generic/lanes.h"
#include "kernels/generic/quant.h"
#include "kernels/generic/tables.h"

namespace loongforge::kernels::generic {
namespace {

// A step's constants, rounded to fp32 once.
template <class V>
struct AdamWStep {
  V decay, beta1, rest1, beta2, rest2, step, unbias2, eps, factor;
  explicit AdamWStep(const AdamW& h)
      : decay(V::set1(static_cast<float>(1.0 - h.lr * h.weight_decay))),
        beta1(V::set1(static_cast<float>(h.beta1))),
        rest1(V::set1(static_cast<float>(1.0 - h.beta1))),
        beta2(V::set1(static_cast<float>(h.beta2))),
        rest2(V::set1(static_cast<float>(1.0 - h.beta2))),
        step(V::set1(static_cast<float>(h.lr / h.bias1))),
        unbias2(V::set1(static_cast<float>(1.0 / h.sqrt_bias2))),
        eps(V::set1(static_cast<float>(h.eps))),
        factor(V::set1(static_cast<float>(h.grad_scale))) {}

  // m, v become the new moments; returns the new parameter.
  LF_INLINE V update(V param, V grad, V* m, V* v) const {
    const V g = grad * factor;
    *m = V::fma(beta1, *m, rest1 * g);
    *v = V::fma(beta2, *v, rest2 * g * g);
    const V change = step * *m / V::fma(V::sqrt(*v), unbias2, eps);
    return param * decay - change;
  }
};

template <class V>
void optim_adamw(const AdamW& h, float* param, float* m, float* v, const float* grad,
                 int64_t n) noexcept {
  const AdamWStep<V> s(h);
  for_lanes(n, [&](int64_t j, auto lanes) {
    V m1 = load<V>(m + j, lanes), v1 = load<V>(v + j, lanes);
    const V p = s.update(load<V>(param + j, lanes), load<V>(grad + j, lanes), &m1, &v1);
    store(m1, m + j, lanes);
    store(v1, v + j, lanes);
    store(p, param + j, lanes);
  });
}

// 16-bit draws as words.
template <class V, class L>
LF_INLINE V load_draws(const uint16_t* draws, L lanes) {
  return V::template shift_right<16>(load<V>(reinterpret_cast<const Bf16*>(draws), lanes));
}

template <class V>
LF_INLINE void store_upper(V v, Bf16* p, Full) {
  v.store_high(p);
}
template <class V>
LF_INLINE void store_upper(V v, Bf16* p, Part part) {
  v.store_high_part(p, part.n);
}

// FP8 codes of scaled magnitudes y <= 14, with `draw` (20 bits) deciding upwards. A subnormal is
// moved into the first normal binade, whose steps are the same.
template <class V>
LF_INLINE V encode_stochastic(V x, V y, V draw) {
  using F = Fp8<Elem::kE4M3>;
  constexpr uint32_t kFirst = 127 + 1 - F::kBias;  // exponent field of the smallest normal
  const V smallest = V::set1_bits(kFirst << 23);
  const V moved = V::select_lt(y, smallest, y + smallest, y);
  const V base = V::select_lt(y, smallest, V::set1_bits(kFirst << F::kMantissaBits),
                              V::set1_bits((kFirst - 1) << F::kMantissaBits));
  const V code = V::sub_int(V::template shift_right<20>(V::add_int(moved, draw)), base);
  return V::bit_or(code, V::bit_and(V::template shift_right<24>(x), V::set1_bits(0x80u)));
}

// One block of moments (at most kFeatureBlock values) between its stored form and fp32.
template <class V>
LF_INLINE void read_block(const void* src, int64_t at, const int8_t* exps, Elem elem, bool root,
                          float* out, int64_t n) {
  if (elem == Elem::kF32) {
    memcpy(out, static_cast<const float*>(src) + at, static_cast<size_t>(n) * sizeof(float));
  } else if (elem == Elem::kBf16) {
    const Bf16* p = static_cast<const Bf16*>(src) + at;
    for_lanes(n, [&](int64_t j, auto lanes) { store(load<V>(p + j, lanes), out + j, lanes); });
  } else {
    const uint8_t* p = static_cast<const uint8_t*>(src) + at;
    const V scale = V::set1(power_of_two(exps[at / kFeatureBlock]));
    for_lanes(n, [&](int64_t j, auto lanes) {
      const V x = decode_lanes<V, Elem::kE4M3>(load_bytes<V>(p + j, lanes)) * scale;
      store(root ? x * x : x, out + j, lanes);
    });
  }
}

// draws: null rounds to nearest, else stochastically.
template <class V>
LF_INLINE void write_block(const float* values, int64_t at, const uint16_t* draws, void* dst,
                           int8_t* exps, Elem elem, bool root, int64_t n) {
  const V half16 = V::set1_bits(0x8000u), half20 = V::set1_bits(0x80000u);
  if (elem == Elem::kF32) {
    memcpy(static_cast<float*>(dst) + at, values, static_cast<size_t>(n) * sizeof(float));
  } else if (elem == Elem::kBf16) {
    Bf16* p = static_cast<Bf16*>(dst) + at;
    for_lanes(n, [&](int64_t j, auto lanes) {
      const V draw = draws == nullptr ? half16 : load_draws<V>(draws + at + j, lanes);
      store_upper(V::add_int(load<V>(values + j, lanes), draw), p + j, lanes);
    });
  } else {
    uint8_t* p = static_cast<uint8_t*>(dst) + at;
    float stored[kFeatureBlock];
    V largest = V::zero();
    for_lanes(n, [&](int64_t j, auto lanes) {
      const V x = load<V>(values + j, lanes);
      const V y = root ? V::sqrt(x) : x;
      store(y, stored + j, lanes);
      largest = V::max(V::abs(y), largest);
    });
    const int e = block_exponent<Elem::kE4M3>(largest.reduce_max(), 1.0f);
    exps[at / kFeatureBlock] = static_cast<int8_t>(e);
    const V scale = V::set1(power_of_two(-e));
    for_lanes(n, [&](int64_t j, auto lanes) {
      const V x = load<V>(stored + j, lanes);
      const V draw = draws == nullptr
                         ? half20
                         : V::template shift_left<4>(load_draws<V>(draws + at + j, lanes));
      V code = encode_stochastic(x, V::abs(x) * scale, draw);
      // A second moment that became 0 would make its step 1 / eps.
      if (root) code = V::max_int(code, V::select_lt(V::zero(), x, V::set1_bits(1u), V::zero()));
      store_bytes(code, p + j, lanes);
    });
  }
}

template <class V>
void optim_adamw_narrow(const AdamW& h, const AdamWArrays& a, const float* grad,
                        int64_t n) noexcept {
  const AdamWStep<V> s(h);
  float m[kFeatureBlock], v[kFeatureBlock], p[kFeatureBlock];
  for (int64_t at = 0; at < n; at += kFeatureBlock) {
    const int64_t count = n - at < kFeatureBlock ? n - at : kFeatureBlock;
    read_block<V>(a.m, at, a.m_exps, a.moments, false, m, count);
    read_block<V>(a.v, at, a.v_exps, a.moments, true, v, count);
    read_block<V>(a.param, at, nullptr, a.param_elem, false, p, count);
    for_lanes(count, [&](int64_t j, auto lanes) {
      V m1 = load<V>(m + j, lanes), v1 = load<V>(v + j, lanes);
      store(s.update(load<V>(p + j, lanes), load<V>(grad + at + j, lanes), &m1, &v1), p + j, lanes);
      store(m1, m + j, lanes);
      store(v1, v + j, lanes);
    });
    write_block<V>(m, at, a.moment_draws, a.m, a.m_exps, a.moments, false, count);
    write_block<V>(v, at, a.moment_draws, a.v, a.v_exps, a.moments, true, count);
    write_block<V>(p, at, a.param_draws, a.param, nullptr, a.param_elem, false, count);
  }
}

template <class V>
void optim_read_moments(const void* src, const int8_t* exps, Elem elem, bool root, float* out,
                        int64_t n) noexcept {
  for (int64_t at = 0; at < n; at += kFeatureBlock)
    read_block<V>(src, at, exps, elem, root, out + at,
                  n - at < kFeatureBlock ? n - at : int64_t{kFeatureBlock});
}

template <class V>
void optim_write_moments(const float* src, void* dst, int8_t* exps, Elem elem, bool root,
                         int64_t n) noexcept {
  for (int64_t at = 0; at < n; at += kFeatureBlock)
    write_block<V>(src + at, at, nullptr, dst, exps, elem, root,
                   n - at < kFeatureBlock ? n - at : int64_t{kFeatureBlock});
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
  return {optim_adamw<V>,          optim_adamw_narrow<V>, optim_read_moments<V>,
          optim_write_moments<V>,  optim_accumulate<V>,   optim_scale<V>,
          optim_sum_squares<V, D>, optim_sum<V, D>,       optim_all_finite<V>};
}

}  // namespace
}  // namespace loongforge::kernels::generic
