// Packing of fp32 operand panels: the order of generic/pack.h, registers at a time.
//
// Ops (generic/tile.md): kMr, kNr and R, one register of R::kLanes values.
#pragma once

#include "kernels/generic/pack.h"

namespace loongforge::kernels {
namespace {

// kRound: fp32 is rounded to bf16 images, bf16 only flushed.
template <bool kRound, class R>
LF_INLINE R as_operand(const float*, R x) {
  return kRound ? x.to_bf16() : x;
}
template <bool kRound, class R>
LF_INLINE R as_operand(const Bf16*, R x) {
  return kRound ? x.flushed() : x;
}
template <class R, class T>
LF_INLINE R load_at_most(const T* p, int64_t n) {
  return n >= R::kLanes ? R::load(p) : n > 0 ? R::load_part(p, static_cast<int>(n)) : R::zero();
}
// For an R that has no cheaper way. 0 < n < kLanes.
template <class R, class T>
LF_INLINE R load_part_by_copy(const T* p, int n) {
  alignas(64) T t[R::kLanes] = {};
  for (int i = 0; i < n; ++i) t[i] = p[i];
  return R::load(t);
}
template <class R>
LF_INLINE void store_part_by_copy(R x, float* p, int n) {
  alignas(64) float t[R::kLanes];
  x.store(t);
  for (int i = 0; i < n; ++i) p[i] = t[i];
}

// ---- B panels of kNr columns.

// src[kk, j]
template <class Ops, bool kRound, class T>
void pack_b_rows(const T* src, int64_t ld, int cols, int64_t k, float* dst) {
  using R = typename Ops::R;
  for (int64_t kk = 0; kk < k; ++kk, src += ld) {
    float* out = dst + (kk ^ 1) * Ops::kNr;
    // The next rows' lines are far apart, where the CPU does not look for them by itself.
    for (int64_t j = 0; j < Ops::kNr; j += static_cast<int64_t>(64 / sizeof(T)))
      __builtin_prefetch(src + Ops::kRowsAhead * ld + j);
    if (cols == Ops::kNr) {
#pragma GCC unroll 16
      for (int j = 0; j < Ops::kNr; j += R::kLanes)
        as_operand<kRound>(src, R::load(src + j)).store(out + j);
    } else {
      for (int j = 0; j < Ops::kNr; j += R::kLanes)
        as_operand<kRound>(src, load_at_most<R>(src + j, cols - j)).store(out + j);
    }
  }
  if (k % 2 != 0) memset(dst + (k ^ 1) * Ops::kNr, 0, sizeof(float) * Ops::kNr);
}

// src[j, kk]
template <class Ops, bool kRound, class T>
void pack_b_columns(const T* src, int64_t ld, int cols, int64_t k, float* dst) {
  using R = typename Ops::R;
  constexpr int L = R::kLanes;
  for (int64_t kk = 0; kk < k; kk += L) {
    const int64_t n = k - kk < L ? k - kk : L;
    for (int j0 = 0; j0 < Ops::kNr; j0 += L) {
      R r[L];
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i)
        r[i] = j0 + i < cols ? as_operand<kRound>(src, load_at_most<R>(src + (j0 + i) * ld + kk, n))
                             : R::zero();
      R::transpose(r);
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i)
        if (i < n + n % 2) r[i].store(dst + ((kk + i) ^ 1) * Ops::kNr + j0);
    }
  }
}

// ---- A panels of kMr rows: registers that are wider than the rest of a column are stored in
// ascending order, so that what one writes too far, the next overwrites; the last ones are cut.
template <class R>
LF_INLINE void store_first(R x, int n, bool cut, float* dst) {
  if (n >= R::kLanes || !cut) return x.store(dst);
  x.store_part(dst, n);
}

// src[i, kk]
template <class Ops, bool kRound, class T>
void pack_a_rows(const T* src, int64_t ld, int valid, int64_t k, float* dst) {
  using R = typename Ops::R;
  constexpr int L = R::kLanes, kMr = Ops::kMr, kGroups = (kMr + L - 1) / L;
  static_assert(L % 2 == 0);
  for (int64_t kk = 0; kk < k; kk += L, dst += L * kMr) {
    const int64_t n = k - kk < L ? k - kk : L;
    R r[kGroups * L];
#pragma GCC unroll 16
    for (int i = 0; i < kGroups * L; ++i)
      r[i] = i < kMr && i < valid ? as_operand<kRound>(src, load_at_most<R>(src + i * ld + kk, n))
                                  : R::zero();
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) R::transpose(r + g * L);
    const bool more = k - kk > L;
#pragma GCC unroll 16
    for (int t = 0; t < L; ++t) {
      if (t >= n + n % 2) break;
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g)
        store_first(r[g * L + (t ^ 1)], kMr - g * L, !more, dst + t * kMr + g * L);
    }
  }
}

// src[kk, i]
template <class Ops, bool kRound, class T>
void pack_a_columns(const T* src, int64_t ld, int valid, int64_t k, float* dst) {
  using R = typename Ops::R;
  constexpr int L = R::kLanes, kMr = Ops::kMr, kGroups = (kMr + L - 1) / L;
  const auto put = [&](int64_t kk, bool cut) {
    float* out = dst + (kk ^ 1) * kMr;
    const T* row = src + kk * ld;
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      // Values too many are the next row's, where there is one.
      const bool whole = valid == kMr && kk + 1 < k && kGroups * L - kMr <= kMr;
      const R x = kk >= k ? R::zero()
                  : whole ? R::load(row + g * L)
                          : load_at_most<R>(row + g * L, valid - g * L);
      store_first(as_operand<kRound>(src, x), kMr - g * L, cut, out + g * L);
    }
  };
  for (int64_t kk = 0; kk < k; kk += 2) {
    put(kk + 1, false);
    put(kk, kk + 2 >= k);
  }
}

}  // namespace
}  // namespace loongforge::kernels
