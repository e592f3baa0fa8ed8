// Small tools of the row kernels: runs of 16 lanes with a last short one, element types, matrix
// rows. In an unnamed namespace, as everything of the per-ISA translation units.
#pragma once

#include <stdint.h>

#include "kernels/types.h"

namespace loongforge::kernels::generic {
namespace {

struct Full {};  // all 16 lanes
struct Part {    // the first n
  int n;
};

template <class V, class T>
LF_INLINE V load(const T* p, Full) {
  return V::load(p);
}
template <class V, class T>
LF_INLINE V load(const T* p, Part part) {
  return V::load_part(p, part.n);
}
template <class V, class T>
LF_INLINE void store(V v, T* p, Full) {
  v.store(p);
}
template <class V, class T>
LF_INLINE void store(V v, T* p, Part part) {
  v.store_part(p, part.n);
}
template <class V>
LF_INLINE V load_bytes(const uint8_t* p, Full) {
  return V::load_bytes(p);
}
template <class V>
LF_INLINE V load_bytes(const uint8_t* p, Part part) {
  return V::load_bytes_part(p, part.n);
}
template <class V>
LF_INLINE void store_bytes(V v, uint8_t* p, Full) {
  v.store_bytes(p);
}
template <class V>
LF_INLINE void store_bytes(V v, uint8_t* p, Part part) {
  v.store_bytes_part(p, part.n);
}

// f(j, Full or Part) for every 16 of n elements, in order.
template <class F>
LF_INLINE void for_lanes(int64_t n, F f) {
  int64_t j = 0;
  for (; j + 16 <= n; j += 16) f(j, Full{});
  if (j < n) f(j, Part{static_cast<int>(n - j)});
}

template <class T>
struct Type {
  using type = T;
};

// f(Type<float>) or f(Type<Bf16>).
template <class F>
LF_INLINE void with_elem(Elem elem, F f) {
  if (elem == Elem::kBf16) {
    f(Type<Bf16>{});
  } else {
    f(Type<float>{});
  }
}

template <class T>
LF_INLINE const T* row_of(const Mat& m, int64_t i) {
  return static_cast<const T*>(m.data) + i * m.ld;
}
template <class T>
LF_INLINE T* row_of(const MatOut& m, int64_t i) {
  return static_cast<T*>(m.data) + i * m.ld;
}

}  // namespace
}  // namespace loongforge::kernels::generic
