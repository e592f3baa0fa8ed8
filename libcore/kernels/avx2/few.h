// Products of up to 4 rows with a packed weight whose values are decoded in registers and never
// stored: generation is bound by reading weights.
#pragma once

#include "kernels/avx2/weights.h"

namespace loongforge::kernels::avx2 {
namespace {

inline constexpr int kFewRows = 4;
inline constexpr int64_t kAhead = 1024;  // bytes of weight that are asked for in advance

template <class Decoder>
struct Fp8Rows {
  Decoder decode;
  static constexpr int64_t kRowBytes = 16;
  LF_INLINE V load(const uint8_t* p) const { return decode(load128(p)); }
};
struct Bf16Rows {
  static constexpr int64_t kRowBytes = 32;
  LF_INLINE V load(const uint8_t* p) const { return V::load(reinterpret_cast<const Bf16*>(p)); }
};

#define LF_FEW_ROWS(X) X(0) X(1) X(2) X(3)
#define LF_FEW_START(i)                         \
  __m256 c##i##0 = _mm256_setzero_ps();         \
  __m256 c##i##1 = _mm256_setzero_ps();         \
  if constexpr (i < kRows) {                    \
    c##i##0 = _mm256_loadu_ps(c + i * ldc);     \
    c##i##1 = _mm256_loadu_ps(c + i * ldc + 8); \
  }
#define LF_FEW_STEP(i)                           \
  if constexpr (i < kRows) {                     \
    const __m256 x = _mm256_broadcast_ss(a + i); \
    c##i##0 = mul_add(x, b.lo, c##i##0);         \
    c##i##1 = mul_add(x, b.hi, c##i##1);         \
  }
#define LF_FEW_K                \
  {                             \
    const V b = from.load(src); \
    LF_FEW_ROWS(LF_FEW_STEP)    \
    src += Rows::kRowBytes;     \
    a += 6;                     \
  }
#define LF_FEW_STORE(i)                         \
  if constexpr (i < kRows) {                    \
    _mm256_storeu_ps(c + i * ldc, c##i##0);     \
    _mm256_storeu_ps(c + i * ldc + 8, c##i##1); \
  }

// c[i][0 .. 15] += rows i of a, times `count` rows of 16 stored values.
template <int kRows, class Rows>
[[gnu::noinline]] void few_rows(const Rows& rows, const uint8_t* src, int64_t count, const float* a,
                                float* c, int64_t ldc) {
  const Rows from = rows;
  LF_FEW_ROWS(LF_FEW_START)
  const auto ahead = [](const uint8_t* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p + kAhead), _MM_HINT_T0);
  };
  for (; count >= 4; count -= 4) {
    // 64 or 128 bytes.
    ahead(src);
    if constexpr (Rows::kRowBytes > 16) ahead(src + 64);
    LF_FEW_K LF_FEW_K LF_FEW_K LF_FEW_K
  }
  for (; count > 0; --count) LF_FEW_K
  LF_FEW_ROWS(LF_FEW_STORE)
}
#undef LF_FEW_STORE
#undef LF_FEW_K
#undef LF_FEW_STEP
#undef LF_FEW_START
#undef LF_FEW_ROWS

template <class Rows>
void few_rows_of(int rows, const Rows& from, const uint8_t* src, int64_t count, const float* a,
                 float* c, int64_t ldc) {
  using Fn = void (*)(const Rows&, const uint8_t*, int64_t, const float*, float*, int64_t);
  static constexpr Fn kFns[kFewRows] = {few_rows<1, Rows>, few_rows<2, Rows>, few_rows<3, Rows>,
                                        few_rows<4, Rows>};
  kFns[rows - 1](from, src, count, a, c, ldc);
}

// c[i][0 .. 15] (+)= rows i < rows of a, times columns n0 .. n0 + 15 of W^T. REQUIRES rows <=
// kFewRows, k > 0.
template <class Tile>
void few_of_weight_t(int rows, const PackedWeight& w, int64_t n0, int64_t k0, int64_t k,
                     const float* a, float* c, int64_t ldc, bool accumulate) {
  const int64_t total = (k + 1) / 2 * 2;
  const int64_t first = n0 * padded(w.k) + k0 * 16;
  for (int i = 0; i < rows && !accumulate; ++i) V::zero().store(c + i * ldc);
  if (w.elem == Elem::kNf4) return few_of_nf4_t(rows, w, n0, k0, k, a, c, ldc);
  if (w.elem == Elem::kBf16)
    return few_rows_of(rows, Bf16Rows{}, w.data + first * 2, total, a, c, ldc);
  for (int64_t r = 0; r < total; r += kWeightBlock, a += 6 * kWeightBlock) {
    const int64_t count = total - r < kWeightBlock ? total - r : kWeightBlock;
    const uint8_t* src = w.data + first + r * 16;
    with_decoder(w.elem, weight_exp(w, n0, k0 + r), Tile::kRounds, [&](auto decode) {
      few_rows_of(rows, Fp8Rows<decltype(decode)>{decode}, src, count, a, c, ldc);
    });
  }
}

}  // namespace
}  // namespace loongforge::kernels::avx2
