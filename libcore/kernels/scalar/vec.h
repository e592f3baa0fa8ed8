// The vector of 16 fp32 lanes that all generic kernels are written on; this scalar form is its
// specification. Every ISA's vec.h provides the same struct V (in namespace
// loongforge::kernels::<isa>) with the same results to the bit.
//
// V stands in an unnamed namespace on every ISA: whatever template is instantiated with it is local
// to its object, so no function compiled for one ISA can be merged with another's.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/types.h"

namespace loongforge::kernels::scalar {
namespace {

struct V {
  static constexpr int kLanes = 16;
  // Vectors that a chain of operations treats side by side: as many as registers allow, so that the
  // CPU need not look far ahead for independent work.
  static constexpr int kTogether = 1;
  static constexpr bool kMergesBits = true;  // merge_bits is one instruction
  float f[16];

  static V zero() { return set1(0.0f); }
  static V set1(float x) {
    V r;
    for (float& e : r.f) e = x;
    return r;
  }
  static V set1_bits(uint32_t u) {
    V r;
    for (int i = 0; i < 16; ++i) r.set_bits(i, u);
    return r;
  }
  static V load(const float* p) {
    V r;
    memcpy(r.f, p, sizeof r.f);
    return r;
  }
  // The first n (0 .. 16) elements; the others are 0. Memory past p + n is not touched.
  static V load_part(const float* p, int n) {
    V r = zero();
    for (int i = 0; i < n; ++i) r.f[i] = p[i];
    return r;
  }
  void store(float* p) const { memcpy(p, f, sizeof f); }
  void store_part(float* p, int n) const {
    for (int i = 0; i < n; ++i) p[i] = f[i];
  }

  static V load(const Bf16* p) { return load_part(p, 16); }
  static V load_part(const Bf16* p, int n) {
    V r = zero();
    for (int i = 0; i < n; ++i) r.set_bits(i, static_cast<uint32_t>(p[i].bits) << 16);
    return r;
  }
  // Rounds to nearest even; |x| < 2^-55 becomes +0; NaN stays NaN (quiet).
  void store(Bf16* p) const { store_part(p, 16); }
  void store_part(Bf16* p, int n) const {
    for (int i = 0; i < n; ++i) p[i].bits = round_operand(bits(i));
  }
  // The upper halves of the lanes as they are.
  void store_high(Bf16* p) const { store_high_part(p, 16); }
  void store_high_part(Bf16* p, int n) const {
    for (int i = 0; i < n; ++i) p[i].bits = static_cast<uint16_t>(bits(i) >> 16);
  }
  // IEEE half precision (exact; NaN becomes quiet).
  static V load_f16(const uint16_t* p) { return load_f16_part(p, 16); }
  static V load_f16_part(const uint16_t* p, int n) {
    V r = zero();
    for (int i = 0; i < n; ++i) r.f[i] = from_f16(p[i]);
    return r;
  }
  // The same rounding without leaving the register: each lane becomes the fp32 image of its bf16
  // value.
  V to_bf16() const {
    V r;
    for (int i = 0; i < 16; ++i) r.set_bits(i, static_cast<uint32_t>(round_operand(bits(i))) << 16);
    return r;
  }

  friend V operator+(V a, V b) {
    return map(a, b, [](float x, float y) { return x + y; });
  }
  friend V operator-(V a, V b) {
    return map(a, b, [](float x, float y) { return x - y; });
  }
  friend V operator*(V a, V b) {
    return map(a, b, [](float x, float y) { return x * y; });
  }
  friend V operator/(V a, V b) {
    return map(a, b, [](float x, float y) { return x / y; });
  }
  static V fma(V a, V b, V c) {  // a * b + c, one rounding
    V r;
    for (int i = 0; i < 16; ++i) r.f[i] = fmaf(a.f[i], b.f[i], c.f[i]);
    return r;
  }
  static V sqrt(V a) {
    return map(a, a, [](float x, float) { return sqrtf(x); });
  }
  static V abs(V a) {
    return map(a, a, [](float x, float) { return fabsf(x); });
  }
  // a > b ? a : b, so the second operand when either is NaN (as vmaxps).
  static V max(V a, V b) {
    return map(a, b, [](float x, float y) { return x > y ? x : y; });
  }
  static V min(V a, V b) {
    return map(a, b, [](float x, float y) { return x < y ? x : y; });
  }
  // Lane by lane: a < b ? x : y (false for NaN).
  static V select_lt(V a, V b, V x, V y) {
    V r;
    for (int i = 0; i < 16; ++i) r.f[i] = a.f[i] < b.f[i] ? x.f[i] : y.f[i];
    return r;
  }
  // Lane by lane: a is NaN ? x : y.
  static V select_nan(V a, V x, V y) {
    V r;
    for (int i = 0; i < 16; ++i) r.set_bits(i, a.f[i] != a.f[i] ? x.bits(i) : y.bits(i));
    return r;
  }
  // Lane i < n ? a : b.
  static V select_first(int n, V a, V b) {
    V r;
    for (int i = 0; i < 16; ++i) r.f[i] = i < n ? a.f[i] : b.f[i];
    return r;
  }
  // Lane i: bit i of mask ? a : b.
  static V select_bits(uint32_t mask, V a, V b) {
    V r;
    for (int i = 0; i < 16; ++i) r.f[i] = (mask >> i & 1u) != 0 ? a.f[i] : b.f[i];
    return r;
  }
  // x * 2^k for k holding integers in [-126, 127] as floats (exact unless the result is subnormal
  // or overflows).
  static V scale2(V x, V k) {
    V r;
    for (int i = 0; i < 16; ++i) {
      V two;
      two.set_bits(0, static_cast<uint32_t>(static_cast<int32_t>(k.f[i]) + 127) << 23);
      r.f[i] = x.f[i] * two.f[0];
    }
    return r;
  }
  static V round_nearest(V a) {  // to nearest even integer; REQUIRES |a| < 2^22
    const float magic = 12582912.0f;
    return map(a, a, [=](float x, float) { return (x + magic) - magic; });
  }

  // The lanes as 32-bit words.
  static V bit_and(V a, V b) {
    return map_bits(a, b, [](uint32_t x, uint32_t y) { return x & y; });
  }
  static V bit_or(V a, V b) {
    return map_bits(a, b, [](uint32_t x, uint32_t y) { return x | y; });
  }
  // The bits of a where mask has ones, those of b elsewhere. REQUIRES b has none where mask has.
  static V merge_bits(V mask, V a, V b) { return bit_or(bit_and(a, mask), b); }
  static V add_int(V a, V b) {
    return map_bits(a, b, [](uint32_t x, uint32_t y) { return x + y; });
  }
  static V sub_int(V a, V b) {
    return map_bits(a, b, [](uint32_t x, uint32_t y) { return x - y; });
  }
  static V max_int(V a, V b) {  // signed
    return map_bits(a, b, [](uint32_t x, uint32_t y) {
      return static_cast<int32_t>(x) > static_cast<int32_t>(y) ? x : y;
    });
  }
  template <int N>
  static V shift_left(V a) {
    return map_bits(a, a, [](uint32_t x, uint32_t) { return x << N; });
  }
  template <int N>
  static V shift_right(V a) {  // logical
    return map_bits(a, a, [](uint32_t x, uint32_t) { return x >> N; });
  }
  // Bytes, zero-extended to words, and back (the low byte of each word).
  static V load_bytes(const uint8_t* p) { return load_bytes_part(p, 16); }
  static V load_bytes_part(const uint8_t* p, int n) {
    V r = zero();
    for (int i = 0; i < n; ++i) r.set_bits(i, p[i]);
    return r;
  }
  void store_bytes(uint8_t* p) const { store_bytes_part(p, 16); }
  void store_bytes_part(uint8_t* p, int n) const {
    for (int i = 0; i < n; ++i) p[i] = static_cast<uint8_t>(bits(i));
  }
  // Lane by lane: its upper half plus its lower half * 2^N, both signed.
  template <int N>
  static V fold_halves(V a) {
    return map_bits(a, a, [](uint32_t x, uint32_t) {
      return (static_cast<uint32_t>(static_cast<int16_t>(x >> 16))) +
             (static_cast<uint32_t>(static_cast<int16_t>(x)) << N);
    });
  }
  // 64 bytes at p from the 64 words of a, b, c, d and the 64 numbers at x: word >> N with the
  // number's sign above; without kMergesBits (word - base) >> N, base in both halves of each word
  // of `below`. REQUIRES words < 2^16 and the shifted ones < 128. Returns the bytes without sign,
  // in an order of the ISA's own.
  template <int N, class X>
  static V store_codes(V a, V b, V c, V d, V /*below*/, const X* x, uint8_t* p) {
    const V* const words[] = {&a, &b, &c, &d};
    uint8_t codes[64];
    for (int i = 0; i < 64; ++i) {
      codes[i] = static_cast<uint8_t>(words[i / 16]->bits(i % 16) >> N);
      p[i] = static_cast<uint8_t>(codes[i] | (sign_of(x[i]) ? 0x80u : 0u));
    }
    V r;
    memcpy(r.f, codes, sizeof codes);
    return r;
  }
  static V min_bytes(V a, V b) {  // unsigned
    uint8_t x[64], y[64];
    memcpy(x, a.f, sizeof x);
    memcpy(y, b.f, sizeof y);
    for (int i = 0; i < 64; ++i) x[i] = x[i] < y[i] ? x[i] : y[i];
    memcpy(a.f, x, sizeof x);
    return a;
  }
  bool has_zero_byte() const {
    uint8_t bytes[64];
    memcpy(bytes, f, sizeof bytes);
    for (const uint8_t byte : bytes)
      if (byte == 0) return true;
    return false;
  }
  // Counting: lanes of `count` are words; adds 1 where a < b.
  static V count_lt(V count, V a, V b) {
    for (int i = 0; i < 16; ++i) count.set_bits(i, count.bits(i) + (a.f[i] < b.f[i] ? 1u : 0u));
    return count;
  }
  static V count_nan(V count, V a) {
    for (int i = 0; i < 16; ++i) count.set_bits(i, count.bits(i) + (a.f[i] != a.f[i] ? 1u : 0u));
    return count;
  }
  uint32_t reduce_add_int() const {
    uint32_t t = 0;
    for (int i = 0; i < 16; ++i) t += bits(i);
    return t;
  }
  uint32_t reduce_max_int() const {  // signed
    V t = *this;
    for (int i = 1; i < 16; ++i)
      if (static_cast<int32_t>(t.bits(i)) > static_cast<int32_t>(t.bits(0)))
        t.set_bits(0, t.bits(i));
    return t.bits(0);
  }

  // Lanes combined by one fixed tree: i with i + 8, then + 4, + 2, + 1.
  float reduce_add() const {
    float t[16];
    memcpy(t, f, sizeof t);
    for (int w = 8; w > 0; w /= 2)
      for (int i = 0; i < w; ++i) t[i] = t[i] + t[i + w];
    return t[0];
  }
  float reduce_max() const {
    float t[16];
    memcpy(t, f, sizeof t);
    for (int w = 8; w > 0; w /= 2)
      for (int i = 0; i < w; ++i) t[i] = t[i] > t[i + w] ? t[i] : t[i + w];
    return t[0];
  }

  uint32_t bits(int i) const {
    uint32_t u;
    memcpy(&u, &f[i], 4);
    return u;
  }
  void set_bits(int i, uint32_t u) { memcpy(&f[i], &u, 4); }

  static uint16_t round_operand(uint32_t u) { return kernels::round_operand(u); }

 private:
  static bool sign_of(float x) { return signbit(x); }
  static bool sign_of(Bf16 x) { return (x.bits & 0x8000u) != 0; }
  static float from_f16(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
    const uint32_t exponent = h >> 10 & 31u;
    const uint32_t mantissa = h & 1023u;
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
      return sign != 0 ? -magnitude : magnitude;
    }
    uint32_t u = sign | (exponent + 112) << 23 | mantissa << 13;
    if (exponent == 31)
      u = sign | 0x7F800000u | (mantissa != 0 ? 0x00400000u : 0u) | mantissa << 13;
    float x;
    memcpy(&x, &u, 4);
    return x;
  }
  template <class F>
  static V map(V a, V b, F fn) {
    V r;
    for (int i = 0; i < 16; ++i) r.f[i] = fn(a.f[i], b.f[i]);
    return r;
  }
  template <class F>
  static V map_bits(V a, V b, F fn) {
    V r;
    for (int i = 0; i < 16; ++i) r.set_bits(i, fn(a.bits(i), b.bits(i)));
    return r;
  }
};

// 16 double lanes, for sums that fp32 cannot hold. fma and reduce_add as V's.
struct D {
  double d[16];
  static D zero() { return D{}; }
  // lane i += x's lane i
  void add(V x) {
    for (int i = 0; i < 16; ++i) d[i] += static_cast<double>(x.f[i]);
  }
  // lane i += x's lane i squared (the square of an fp32 value is exact in double)
  void add_square(V x) {
    for (int i = 0; i < 16; ++i) d[i] += static_cast<double>(x.f[i]) * static_cast<double>(x.f[i]);
  }
  double reduce_add() const {
    double t[16];
    memcpy(t, d, sizeof t);
    for (int w = 8; w > 0; w /= 2)
      for (int i = 0; i < w; ++i) t[i] = t[i] + t[i + w];
    return t[0];
  }
};

}  // namespace
}  // namespace loongforge::kernels::scalar
