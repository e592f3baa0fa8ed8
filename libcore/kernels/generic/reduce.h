// reduce.h's kernels on any V. Words are those of a little-endian memory, so that a run of them is
// a run of codes.
#pragma once

#include <string.h>

#include "kernels/generic/lanes.h"
#include "kernels/generic/quant.h"
#include "kernels/generic/tables.h"

namespace loongforge::kernels::generic {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

template <class V>
void reduce_into_of(float* sum, const void* x, Elem elem, int64_t n) noexcept {
  with_elem(elem, [&]<class X>(Type<X>) {
    const X* from = static_cast<const X*>(x);
    for_lanes(n, [&](int64_t j, auto lanes) {
      store(load<V>(sum + j, lanes) + load<V>(from + j, lanes), sum + j, lanes);
    });
  });
}

template <class V>
void reduce_two_of(const void* a, Elem a_elem, const void* b, Elem b_elem, void* out, Elem out_elem,
                   int64_t n) noexcept {
  with_elem(a_elem, [&]<class A>(Type<A>) {
    with_elem(b_elem, [&]<class B>(Type<B>) {
      with_elem(out_elem, [&]<class Y>(Type<Y>) {
        const A* x = static_cast<const A*>(a);
        const B* y = static_cast<const B*>(b);
        Y* to = static_cast<Y*>(out);
        for_lanes(n, [&](int64_t j, auto lanes) {
          store(load<V>(x + j, lanes) + load<V>(y + j, lanes), to + j, lanes);
        });
      });
    });
  });
}

// Blocks are looked at by their largest magnitude, and counted only where it is not finite.
template <class V>
NonFinite reduce_scan(const void* x, Elem elem, int64_t n) noexcept {
  constexpr int64_t kBlock = 4096;
  NonFinite found;
  with_elem(elem, [&]<class X>(Type<X>) {
    const X* p = static_cast<const X*>(x);
    for (int64_t at = 0; at < n; at += kBlock) {
      const int64_t count = n - at < kBlock ? n - at : kBlock;
      if (max_magnitude<V>(V::zero(), p + at, count).reduce_max_int() < 0x7F800000u) continue;
      V nan = V::zero(), infinite = V::zero();
      for_lanes(count, [&](int64_t j, auto lanes) {
        const V v = load<V>(p + at + j, lanes);
        nan = V::count_nan(nan, v);
        infinite = V::count_lt(infinite, V::set1_bits(0x7F7FFFFFu), V::abs(v));
      });
      found.nan += nan.reduce_add_int();
      found.infinite += infinite.reduce_add_int();
      for (int64_t j = at; found.first < 0; ++j) {
        if constexpr (sizeof(X) == 2) {
          if ((p[j].bits & 0x7F80u) == 0x7F80u) found.first = j;
        } else {
          if ((bits_of(p[j]) & 0x7F800000u) == 0x7F800000u) found.first = j;
        }
      }
    }
  });
  return found;
}

template <class V>
void reduce_pack(Elem fp8, const void* x, Elem elem, int64_t n, float factor, uint64_t* words,
                 int8_t* exps, QuantCounts* counts) noexcept {
  if (n == 0) return;
  words[words_of_codes(n) - 1] = 0;
  quant_rows<V>(fp8, Mat{x, n, elem}, n, factor, reinterpret_cast<uint8_t*>(words), n, exps,
                (n + kFeatureBlock - 1) / kFeatureBlock, counts, 0, 1);
}

template <class V>
void reduce_unpack(Elem fp8, const uint64_t* words, const int8_t* exps, int64_t n, float* x,
                   bool accumulate) noexcept {
  const uint8_t* codes = reinterpret_cast<const uint8_t*>(words);
  with_fp8(fp8, [&]<Elem kFp8>(ElemTag<kFp8>) {
    for (int64_t at = 0; at < n; at += kFeatureBlock) {
      const int64_t count = n - at < kFeatureBlock ? n - at : kFeatureBlock;
      const V scale = V::set1(power_of_two(exps[at / kFeatureBlock]));
      for_lanes(count, [&](int64_t j, auto lanes) {
        const V v = decode_lanes<V, kFp8>(load_bytes<V>(codes + at + j, lanes)) * scale;
        store(accumulate ? load<V>(x + at + j, lanes) + v : v, x + at + j, lanes);
      });
    }
  });
}

template <class V>
constexpr ReduceTable reduce_table() {
  return {reduce_into_of<V>, reduce_two_of<V>, reduce_scan<V>, reduce_pack<V>, reduce_unpack<V>};
}

}  // namespace
}  // namespace loongforge::kernels::generic
