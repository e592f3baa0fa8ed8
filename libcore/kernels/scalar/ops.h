// What the scalar ISA gives to the generic gemm and attention (see generic/tile.md): plain C++, and
// the specification of each operation.
#pragma once

#include "kernels/generic/fp8_bits.h"
#include "kernels/generic/panel_tile.h"
#include "kernels/nf4_format.h"
#include "kernels/scalar/vec.h"

namespace loongforge::kernels::scalar {
namespace {

// 4 fp32.
struct R {
  static constexpr int kLanes = 4;
  float f[4];

  template <class F>
  static R each(F f) {
    R r;
    for (int i = 0; i < 4; ++i) r.f[i] = f(i);
    return r;
  }
  static float of_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
  }
  static uint32_t bits(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
  }
  static R zero() { return set1(0.0f); }
  static R set1(float x) {
    return each([&](int) { return x; });
  }
  static R set1_bits(uint32_t u) { return set1(of_bits(u)); }
  static R broadcast(const float* p) { return set1(*p); }
  static R load(const float* p) {
    return each([&](int i) { return p[i]; });
  }
  static R load(const Bf16* p) {
    return each([&](int i) { return bf16_value(p[i].bits); });
  }
  template <class T>
  static R load_part(const T* p, int n) {
    return load_part_by_copy<R>(p, n);
  }
  void store(float* p) const { memcpy(p, f, sizeof f); }
  void store_part(float* p, int n) const { store_part_by_copy(*this, p, n); }

  R to_bf16() const {
    return each([&](int i) { return bf16_value(round_operand(bits(f[i]))); });
  }
  R flushed() const {
    return each([&](int i) { return fabsf(f[i]) < 0x1p-55f ? 0.0f : f[i]; });
  }
  friend R operator*(R a, R b) {
    return each([&](int i) { return a.f[i] * b.f[i]; });
  }
  static R bit_and(R a, R b) {
    return each([&](int i) { return of_bits(bits(a.f[i]) & bits(b.f[i])); });
  }
  static R fma(R a, R b, R c) {
    return each([&](int i) { return fmaf(a.f[i], b.f[i], c.f[i]); });
  }
  // Of bf16 images, whose product is exact, so that multiply and add round as fma does.
  static R mul_add(R x, R y, R sum) {
    return each([&](int i) { return x.f[i] * y.f[i] + sum.f[i]; });
  }
  static void transpose(R r[4]) {
    R t[4];
    for (int i = 0; i < 4; ++i) t[i] = each([&](int j) { return r[j].f[i]; });
    memcpy(r, t, sizeof t);
  }
};

struct Codes {
  uint8_t code[16];
};

template <bool kE4M3, bool kSmall>
struct Fp8Decoder {
  int exp;

  explicit Fp8Decoder(int e) : exp(e) {}
  V operator()(Codes codes) const {
    const uint16_t* images = fp8_images(kE4M3 ? Elem::kE4M3 : Elem::kE5M2);
    V r;
    for (int i = 0; i < 16; ++i) {
      const int code = codes.code[i];
      r.f[i] = bf16_value(static_cast<uint16_t>(scale_image(images[code & 0x7F], exp, kSmall) |
                                                (code & 0x80) << 8));
    }
    return r;
  }
};

struct Nf4Table {
  struct Words {
    uint32_t word[4];
  };
  static Words load(const uint8_t* p) {
    Words w;
    memcpy(w.word, p, sizeof w.word);
    return w;
  }
  static Words next(Words w) {
    for (uint32_t& word : w.word) word >>= 4;
    return w;
  }
  template <int kNibble>
  R at(Words w) const {
    return R::each([&](int i) { return kNf4Values[w.word[i] >> 4 * kNibble & 15]; });
  }
  V row(uint32_t first, uint32_t second) const {
    V r;
    for (int i = 0; i < 16; ++i)
      r.f[i] = kNf4Values[(i < 8 ? first : second) >> 4 * (i % 8 ^ 1) & 15];
    return r;
  }
};

// The register tiles, element by element.
template <int kRows, int kCols, bool kRounds>
struct ScalarTiles {
  static float mul_add(float x, float y, float sum) {
    // Products of bf16 images are exact in fp32, so that multiply and add round as fma does.
    return kRounds ? sum + x * y : fmaf(x, y, sum);
  }
  static void mul(int mr, int64_t pairs, const float* a, const float* b, float* c, int64_t ldc,
                  bool from_c, Ahead /*ahead*/) {
    float sum[kRows][kCols] = {};
    if (from_c) load_tile<kCols>(mr, kCols, c, ldc, sum[0]);
    for (int64_t k = 0; k < 2 * pairs; ++k, a += kRows, b += kCols)
      for (int i = 0; i < mr; ++i)
        for (int j = 0; j < kCols; ++j) sum[i][j] = mul_add(a[i], b[j], sum[i][j]);
    store_tile<kCols>(mr, kCols, sum[0], c, ldc);
  }
  static constexpr int kNarrowLanes = 8, kMaxVecs = 1;
  static void narrow(int /*vecs*/, int64_t pairs, const StridedA& a, const float* b, float* c,
                     int64_t ldc, bool from_c) {
    strided(kNarrowRows, kCols, pairs, a, b, c, ldc, from_c);
  }
  static void strided(int mr, int /*nr: 16*/, int64_t pairs, const StridedA& a, const float* b,
                      float* c, int64_t ldc, bool from_c) {
    const auto* data = static_cast<const float*>(a.data);
    for (int i = 0; i < mr; ++i) {
      float sum[kCols] = {};
      if (from_c) memcpy(sum, c + i * ldc, sizeof sum);
      for (int64_t p = 0; p < pairs; ++p) {
        const float* at = data + i * a.row + p * a.step;
        const float odd = at[a.odd], even = at[a.even];
        const float* row = b + p * 2 * kCols;
        for (int j = 0; j < kCols; ++j)
          sum[j] = mul_add(even, row[kCols + j], mul_add(odd, row[j], sum[j]));
      }
      memcpy(c + i * ldc, sum, sizeof sum);
    }
  }
};

struct Ops {
  using V = scalar::V;
  using R = scalar::R;
  using Codes = scalar::Codes;
  template <bool kE4M3, bool kSmall>
  using Fp8 = Fp8Decoder<kE4M3, kSmall>;
  using Nf4 = Nf4Table;
  static constexpr int kMr = 4, kNr = 16;
  template <bool kRounds>
  using Tiles = ScalarTiles<kMr, kNr, kRounds>;
  static constexpr int64_t kABytes = 1 << 20;
  static constexpr int64_t kKBlock = 512, kShortKBlock = 512;
  static constexpr int64_t kRowsAhead = 16, kFewAhead = 1024;
  static constexpr int kStrips = 4, kQueries = 96, kKeys = 128;

  template <int kPart>
  static R part(const V& x) {
    return R::load(x.f + 4 * kPart);
  }
  static Codes load_codes(const uint8_t* p) {
    Codes c;
    memcpy(c.code, p, sizeof c.code);
    return c;
  }
  static void transpose_codes(const uint8_t* src, int64_t stride, Codes out[16]) {
    for (int n = 0; n < 16; ++n)
      for (int k = 0; k < 16; ++k) out[n].code[k] = src[(k ^ 1) * stride + n];
  }
};

}  // namespace
}  // namespace loongforge::kernels::scalar
