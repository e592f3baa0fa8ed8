// Softmax cross-entropy and argmax on any V, D.
#pragma once

#include <string.h>

#include "kernels/generic/lanes.h"
#include "kernels/generic/math_vec.h"
#include "kernels/generic/tables.h"
#include "kernels/math.h"

namespace loongforge::kernels::generic {
namespace {

inline constexpr float kMinusInfinity = -__builtin_inff();

template <class V>
LF_INLINE V load_or(const float* p, Full, V) {
  return V::load(p);
}
template <class V>
LF_INLINE V load_or(const float* p, Part part, V other) {
  return V::select_first(part.n, V::load_part(p, part.n), other);
}

// Four running maxima, since one would wait for itself; the largest of a set does not depend on the
// order.
template <class V>
LF_INLINE float row_max(const float* x, int64_t n) {
  const V low = V::set1(kMinusInfinity);
  V a = low, b = low, c = low, d = low;
  int64_t j = 0;
  for (; j + 64 <= n; j += 64) {
    a = V::max(a, V::load(x + j));
    b = V::max(b, V::load(x + j + 16));
    c = V::max(c, V::load(x + j + 32));
    d = V::max(d, V::load(x + j + 48));
  }
  for_lanes(n - j, [&](int64_t i, auto lanes) { a = V::max(a, load_or(x + j + i, lanes, low)); });
  return V::max(V::max(a, b), V::max(c, d)).reduce_max();
}

// Sum of e^(x - max): fp32 lanes within runs of kRun elements, the runs in double lanes, so that a
// row of 100000 logits loses nothing.
template <class V, class D>
LF_INLINE double sum_of_exp(const float* x, int64_t n, V max) {
  constexpr int64_t kRun = 512;
  D total = D::zero();
  for (int64_t run = 0; run < n; run += kRun) {
    V sum = V::zero();
    for_lanes(n - run < kRun ? n - run : kRun, [&](int64_t j, auto lanes) {
      sum = sum + exp(load_or(x + run + j, lanes, V::set1(kMinusInfinity)) - max);
    });
    total.add(sum);
  }
  return total.reduce_add();
}

template <class V, class Y>
void xent_gradient(const float* x, int64_t n, int64_t target, V max, float inverse, Y* out) {
  const V factor = V::set1(inverse);
  // The target's lanes first: `out` may be written over the logits.
  const int64_t at = target / 16 * 16;
  const int lanes_there = n - at < 16 ? static_cast<int>(n - at) : 16;
  const V there = exp(V::load_part(x + at, lanes_there) - max) * factor;
  const V corrected = V::select_bits(1u << (target - at), there - V::set1(1.0f), there);
  for_lanes(n, [&](int64_t j, auto lanes) {
    store(exp(load<V>(x + j, lanes) - max) * factor, out + j, lanes);
  });
  corrected.store_part(out + at, lanes_there);
}

template <class V, class D>
void loss_xent(const float* logits, int64_t ld, int64_t vocab, const int32_t* targets, float* loss,
               MatOut d_logits, int64_t r0, int64_t r1) noexcept {
  for (int64_t r = r0; r < r1; ++r) {
    const float* x = logits + r * ld;
    const int64_t target = targets[r];
    if (target < 0) {
      loss[r] = 0.0f;
      if (d_logits.data != nullptr) {
        memset(static_cast<char*>(d_logits.data) + r * d_logits.ld * elem_bytes(d_logits.elem), 0,
               static_cast<size_t>(vocab) * static_cast<size_t>(elem_bytes(d_logits.elem)));
      }
      continue;
    }
    const float largest = row_max<V>(x, vocab);
    const V max = V::set1(largest);
    const double sum = sum_of_exp<V, D>(x, vocab, max);
    loss[r] = static_cast<float>(static_cast<double>(largest) - static_cast<double>(x[target]) +
                                 det_log(sum));
    if (d_logits.data == nullptr) continue;
    const float inverse = static_cast<float>(1.0 / sum);
    with_elem(d_logits.elem, [&]<class Y>(Type<Y>) {
      xent_gradient<V, Y>(x, vocab, target, max, inverse, row_of<Y>(d_logits, r));
    });
  }
}

template <class V>
int64_t loss_argmax(const float* x, int64_t n) noexcept {
  V best = V::set1(kMinusInfinity);
  V where = V::set1_bits(0xFFFFFFFFu);
  alignas(64) static constexpr float kLaneBits[16] = {
      0x0p-149f, 0x1p-149f, 0x2p-149f, 0x3p-149f, 0x4p-149f, 0x5p-149f,
      0x6p-149f, 0x7p-149f, 0x8p-149f, 0x9p-149f, 0xAp-149f, 0xBp-149f,
      0xCp-149f, 0xDp-149f, 0xEp-149f, 0xFp-149f};  // words 0 .. 15
  V index = V::load(kLaneBits);
  for_lanes(n, [&](int64_t j, auto lanes) {
    const V v = load_or(x + j, lanes, V::set1(kMinusInfinity));
    where = V::select_lt(best, v, index, where);
    best = V::select_lt(best, v, v, best);
    index = V::add_int(index, V::set1_bits(16u));
  });
  float values[16];
  uint32_t places[16];
  best.store(values);
  {
    float words[16];
    where.store(words);
    memcpy(places, words, sizeof places);
  }
  int64_t found = -1;
  float value = kMinusInfinity;
  for (int i = 0; i < 16; ++i) {
    if (places[i] == 0xFFFFFFFFu) continue;
    const int64_t place = places[i];
    if (found < 0 || values[i] > value || (values[i] == value && place < found)) {
      found = place;
      value = values[i];
    }
  }
  if (found >= 0) return found;
  for (int64_t j = 0; j < n; ++j)  // nothing above minus infinity
    if (x[j] == kMinusInfinity) return j;
  return 0;
}

template <class V, class D>
constexpr LossTable loss_table() {
  return {loss_xent<V, D>, loss_argmax<V>};
}

}  // namespace
}  // namespace loongforge::kernels::generic
