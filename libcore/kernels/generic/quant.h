// FP8 and NF4 codecs and quantisers on any V; fp8_format.h and nf4_format.h are what they must
// equal.
#pragma once

#include <string.h>

#include "kernels/fp8_format.h"
#include "kernels/generic/lanes.h"
#include "kernels/generic/tables.h"
#include "kernels/nf4_format.h"

namespace loongforge::kernels::generic {
namespace {

LF_INLINE uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
LF_INLINE float float_of(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}
LF_INLINE float power_of_two(int e) {  // REQUIRES -126 <= e <= 127
  return float_of(static_cast<uint32_t>(e + 127) << 23);
}

// Per-lane counters of one call; QuantCounts is what they add up to.
template <class V>
struct Counters {
  V overflow = V::zero(), nan = V::zero(), nonzero = V::zero(), nonzero_codes = V::zero();
  LF_INLINE void add_to(QuantCounts* counts) const {
    if (counts == nullptr) return;
    counts->overflow += overflow.reduce_add_int();
    counts->nan += nan.reduce_add_int();
    counts->zero += static_cast<int64_t>(nonzero.reduce_add_int()) -
                    static_cast<int64_t>(nonzero_codes.reduce_add_int());
  }
};

// Codes (one per word) of magnitude, the absolute value of x scaled. Adding `magic`, whose last
// place is a step of the magnitude's binade, rounds to nearest even, subnormals included: the sum's
// low bits are the number of steps, a carry into the next binade falls into place. kGuard: there
// may be NaN or values above the largest; else both are excluded.
template <class V, Elem kFp8, bool kGuard>
LF_INLINE V encode_lanes(V x, V magnitude) {
  using F = Fp8<kFp8>;
  constexpr uint32_t kSmallestNormal = static_cast<uint32_t>(127 + 1 - F::kBias) << 23;
  if constexpr (kGuard)
    magnitude = V::min(magnitude, V::set1(F::kMax));  // NaN becomes kMax for now
  const V binade =
      V::max(V::bit_and(magnitude, V::set1_bits(0x7F800000u)), V::set1_bits(kSmallestNormal));
  const V magic =
      V::add_int(binade, V::set1_bits(static_cast<uint32_t>(23 - F::kMantissaBits) << 23));
  const V steps = V::sub_int(magnitude + magic, magic);
  const V first_code = V::template shift_right<23 - F::kMantissaBits>(
      V::sub_int(binade, V::set1_bits(kSmallestNormal)));
  const V sign = V::bit_and(V::template shift_right<24>(x), V::set1_bits(0x80u));
  const V codes = V::bit_or(V::add_int(first_code, steps), sign);
  if constexpr (!kGuard) return codes;
  return V::select_nan(x, V::set1_bits(0x7Fu), codes);
}

template <class V, Elem kFp8>
LF_INLINE V decode_lanes(V codes) {
  using F = Fp8<kFp8>;
  constexpr uint32_t kShift = 23 - F::kMantissaBits;
  const V sign = V::bit_and(V::template shift_left<24>(codes), V::set1_bits(0x80000000u));
  const V magnitude = V::template shift_left<kShift>(V::bit_and(codes, V::set1_bits(0x7Fu)));
  const V normal = V::add_int(magnitude, V::set1_bits(static_cast<uint32_t>(127 - F::kBias) << 23));
  const float base = power_of_two(-F::kBias);  // a subnormal m came out as base * (1 + m / 2^bits)
  const V subnormal = normal - V::set1(base);
  V r = V::select_lt(normal, V::set1(base + base), subnormal + subnormal, normal);
  const V special = V::select_lt(normal, V::set1(F::kNanFrom), V::set1_bits(0x7F800000u),
                                 V::set1_bits(0x7FC00000u));
  r = V::select_lt(normal, V::set1(F::kInfinityFrom), r, special);
  return V::bit_or(r, sign);
}

// n codes of x * scale. scale: 2^-e.
template <class V, Elem kFp8, bool kGuard, class X>
LF_INLINE void encode_run(const X* x, int64_t n, float scale, uint8_t* codes,
                          Counters<V>* counters) {
  using F = Fp8<kFp8>;
  const V factor = V::set1(scale);
  Counters<V> c = *counters;
  for_lanes(n, [&](int64_t j, auto lanes) {
    const V v = load<V>(x + j, lanes);
    const V absolute = V::abs(v);
    const V magnitude = absolute * factor;
    store_bytes(encode_lanes<V, kFp8, kGuard>(v, magnitude), codes + j, lanes);
    c.nonzero = V::count_lt(c.nonzero, V::zero(), absolute);
    c.nonzero_codes = V::count_lt(c.nonzero_codes, V::set1(F::kZeroUpTo), magnitude);
    if constexpr (kGuard) {
      c.overflow = V::count_lt(c.overflow, V::set1(F::kOverflowAbove), magnitude);
      c.nan = V::count_nan(c.nan, v);
    }
  });
  *counters = c;
}

// The magnitudes of 64 elements.
template <class V>
struct Sixtyfour {
  V a, b, c, d;
};
template <class V, class X>
LF_INLINE Sixtyfour<V> magnitudes(const X* x) {
  return {V::abs(V::load(x)), V::abs(V::load(x + 16)), V::abs(V::load(x + 32)),
          V::abs(V::load(x + 48))};
}
template <class V>
LF_INLINE V largest(const Sixtyfour<V>& m) {  // as integers
  return V::max_int(V::max_int(m.a, m.b), V::max_int(m.c, m.d));
}
// Those of a feature block.
template <class V>
struct Block {
  Sixtyfour<V> low, high;
  LF_INLINE V largest() const { return V::max_int(generic::largest(low), generic::largest(high)); }
};
template <class V, class X>
LF_INLINE Block<V> load_block(const X* x) {
  return {magnitudes<V>(x), magnitudes<V>(x + 64)};
}

// The hardware's own prefetching is slower than one stream of this.
constexpr int64_t kBlocksAhead = 8;
template <class X>
LF_INLINE void prefetch_block(const X* x) {
  constexpr int64_t kLine = 64 / sizeof(X);
#pragma GCC unroll 8
  for (int64_t i = 0; i < kFeatureBlock; i += kLine) __builtin_prefetch(x + i);
}

// Encodes 64 elements at a time that are neither NaN nor, scaled, above the largest value. Rounds
// as encode_lanes does, in fewer operations: adding x * 2^(bits - 23) to the power of two that
// begins x's binade (or the smallest normal's) leaves the number of steps in the sum's lower half
// and the binade's in its upper half, which one multiplication by weights adds up. The scale only
// says which code that sum starts from: the lower half begins at minus the steps below, an even
// number; where that would cost an instruction (not V::kMergesBits), storing takes them off.
template <class V, Elem kFp8>
struct Encoder {
  using F = Fp8<kFp8>;
  static constexpr int kShift = 7 - F::kMantissaBits;  // binades are 2^7 apart, steps 2^kShift
  static constexpr uint32_t kSteps = 1u << F::kMantissaBits;  // of a binade
  V smallest, offset, below;

  static LF_INLINE int smallest_exponent(int e) { return e + 1 - F::kBias; }
  // Whether the smallest binade is one of normal fp32 numbers.
  static LF_INLINE bool can_encode(int e) { return smallest_exponent(e) >= -126; }
  explicit LF_INLINE Encoder(int e) {
    const uint32_t biased = static_cast<uint32_t>(smallest_exponent(e) + 127);
    smallest = V::set1_bits(biased << 23);
    below = V::set1_bits(biased << 23 | biased << 7);
    offset = V::set1_bits(0xFFFFu & ~(biased * kSteps - 1));
  }
  LF_INLINE V steps(V magnitude) const {
    const V exponents = V::set1_bits(0x7F800000u);
    V binade = V::max(magnitude, smallest);
    if constexpr (V::kMergesBits) {
      binade = V::merge_bits(exponents, binade, offset);
    } else {
      binade = V::bit_and(exponents, binade);
    }
    const V sum = V::fma(magnitude, V::set1(power_of_two(F::kMantissaBits - 23)), binade);
    return V::template fold_halves<kShift>(sum);
  }
  // The codes without sign, as V::store_codes.
  template <class X>
  LF_INLINE V encode(const Sixtyfour<V>& m, const X* x, uint8_t* codes) const {
    return V::template store_codes<kShift>(steps(m.a), steps(m.b), steps(m.c), steps(m.d), below, x,
                                           codes);
  }
};

// Counts what encode_run would: the sources that are not zero, and those whose code is not.
// REQUIRES n % 16 == 0.
template <class V, Elem kFp8, class X>
LF_INLINE void count_zeros(const X* x, int64_t n, float scale, Counters<V>* c) {
  const V factor = V::set1(scale);
  for (int64_t j = 0; j < n; j += 16) {
    const V absolute = V::abs(V::load(x + j));
    c->nonzero = V::count_lt(c->nonzero, V::zero(), absolute);
    c->nonzero_codes =
        V::count_lt(c->nonzero_codes, V::set1(Fp8<kFp8>::kZeroUpTo), absolute * factor);
  }
}

// Largest magnitude as bits, taken as integers so that a NaN anywhere makes it exceed infinity's.
template <class V, class X>
LF_INLINE V max_magnitude(V m, const X* x, int64_t n) {
  for_lanes(n, [&](int64_t j, auto lanes) { m = V::max_int(m, V::abs(load<V>(x + j, lanes))); });
  return m;
}

// The same without NaN.
template <class V, class X>
LF_INLINE V max_number(V m, const X* x, int64_t n) {
  for_lanes(n, [&](int64_t j, auto lanes) { m = V::max(V::abs(load<V>(x + j, lanes)), m); });
  return m;
}

struct BlockScale {
  int exponent;
  bool guard;           // encode with encode_run's kGuard
  bool counted = true;  // codes of zero are to be counted, and some source may not be zero
};

// amax * 2^-e as if exponents had no bounds: where both are normal numbers, the product's bits.
LF_INLINE int64_t scaled_bits(uint32_t amax, int e) {
  return static_cast<int64_t>(amax) - static_cast<int64_t>(e) * (1 << 23);
}

// Magnitudes as their bits: vector units have better things to do.
struct Peaks {
  uint32_t amax = 0, peak = 0;
  LF_INLINE void take(uint32_t block_amax, int exponent) {
    constexpr int64_t kNormal = 0x00800000, kInfinity = 0x7F800000;
    int64_t scaled = scaled_bits(block_amax, exponent);
    if (block_amax < kNormal || block_amax >= kInfinity || scaled < kNormal || scaled >= kInfinity)
        [[unlikely]]
      scaled = bits_of(float_of(block_amax) * power_of_two(-exponent));
    amax = amax > block_amax ? amax : block_amax;
    peak = peak > scaled ? peak : static_cast<uint32_t>(scaled);
  }
  LF_INLINE void add_to(QuantCounts* counts) const {
    if (counts == nullptr) return;
    counts->amax = counts->amax > float_of(amax) ? counts->amax : float_of(amax);
    counts->peak = counts->peak > float_of(peak) ? counts->peak : float_of(peak);
  }
};

// amax: the bits of the block's largest magnitude (infinity allowed), NaN left out.
template <Elem kFp8>
LF_INLINE int exponent_of_bits(uint32_t amax, float factor) {
  using F = Fp8<kFp8>;
  constexpr uint32_t kLargestFloat = 0x7F7FFFFFu;
  if (amax == 0) return 0;
  uint32_t wanted = amax;
  if (factor != 1.0f) wanted = bits_of(float_of(amax) * factor);
  if (wanted > kLargestFloat) wanted = kLargestFloat;
  // kMax is 1.75 * 2^k for both formats: the exponent goes up one where the mantissa exceeds 1.75.
  constexpr uint32_t kUp = 0x007FFFFFu - 0x00600000u;
  const int binade = static_cast<int>((wanted + kUp) >> 23) - 127;
  const int of_max = static_cast<int>(bits_of(F::kMax) >> 23) - 127;
  const int e = binade - of_max;
  return e < kMinScaleExp ? kMinScaleExp : e;
}

template <Elem kFp8>
LF_INLINE int block_exponent(float amax, float factor) {
  return exponent_of_bits<kFp8>(bits_of(amax), factor);
}

// Whether to encode with a guard: a NaN, or more than the largest value.
template <Elem kFp8>
LF_INLINE bool needs_guard(uint32_t amax, bool has_nan, int e) {
  return has_nan || amax >= 0x7F800000u || scaled_bits(amax, e) > bits_of(Fp8<kFp8>::kMax);
}

template <Elem kFp8>
LF_INLINE BlockScale block_scale(uint32_t amax, bool has_nan, float factor) {
  const int e = exponent_of_bits<kFp8>(amax, factor);
  return {e, needs_guard<kFp8>(amax, has_nan, e)};
}

template <class V, Elem kFp8, class X>
LF_INLINE void encode_block_row(const BlockScale& s, const X* x, int64_t n, uint8_t* codes,
                                Counters<V>* counters) {
  const float scale = power_of_two(-s.exponent);
  if (s.guard || !Encoder<V, kFp8>::can_encode(s.exponent)) {
    encode_run<V, kFp8, true>(x, n, scale, codes, counters);
    return;
  }
  const Encoder<V, kFp8> encoder(s.exponent);
  V least = V::set1_bits(~0u);
  int64_t j = 0;
  for (; j + 64 <= n; j += 64)
    least = V::min_bytes(least, encoder.encode(magnitudes<V>(x + j), x + j, codes + j));
  if (s.counted && least.has_zero_byte()) count_zeros<V, kFp8>(x, j, scale, counters);
  encode_run<V, kFp8, false>(x + j, n - j, scale, codes + j, counters);
}

// The same of a whole feature block, its magnitudes at hand.
template <class V, Elem kFp8, class X>
LF_INLINE void encode_whole_block(const BlockScale& s, const Block<V>& block, const X* x,
                                  uint8_t* codes, Counters<V>* counters) {
  const float scale = power_of_two(-s.exponent);
  if (s.guard || !Encoder<V, kFp8>::can_encode(s.exponent)) [[unlikely]] {
    encode_run<V, kFp8, true>(x, kFeatureBlock, scale, codes, counters);
    return;
  }
  const Encoder<V, kFp8> encoder(s.exponent);
  const V low = encoder.encode(block.low, x, codes);
  const V high = encoder.encode(block.high, x + 64, codes + 64);
  if (s.counted && V::min_bytes(low, high).has_zero_byte()) [[unlikely]]
    count_zeros<V, kFp8>(x, kFeatureBlock, scale, counters);
}

// choose(amax, has_nan): the scale of a block. exps may be null.
template <class V, Elem kFp8, class X, class Choose>
LF_INLINE void quantize_rows_of(const Mat& x, int64_t cols, Choose choose, uint8_t* codes,
                                int64_t ld_codes, int8_t* exps, int64_t ld_exps,
                                QuantCounts* counts, int64_t r0, int64_t r1) {
  static_assert(kFeatureBlock == 128);
  Counters<V> counters;
  Peaks peaks;
  for (int64_t r = r0; r < r1; ++r) {
    const X* row = row_of<X>(x, r);
    const auto scale_of = [&](int64_t c, int64_t n, V largest_of_lanes) {
      uint32_t amax = largest_of_lanes.reduce_max_int();
      const bool has_nan = amax > 0x7F800000u;
      if (has_nan) [[unlikely]]
        amax = bits_of(max_number<V>(V::zero(), row + c, n).reduce_max());
      BlockScale s = choose(amax, has_nan);
      s.counted = counts != nullptr && amax != 0;
      if (exps != nullptr) exps[r * ld_exps + c / kFeatureBlock] = static_cast<int8_t>(s.exponent);
      peaks.take(amax, s.exponent);
      return s;
    };
    // The scale of a block is found while the one before is encoded: its chain is long.
    int64_t c = 0;
    if (cols >= kFeatureBlock) {
      Block<V> block = load_block<V>(row);
      BlockScale s = scale_of(0, kFeatureBlock, block.largest());
      for (; c + 2 * kFeatureBlock <= cols; c += kFeatureBlock) {
        prefetch_block(row + c + kBlocksAhead * kFeatureBlock);
        const Block<V> next = load_block<V>(row + c + kFeatureBlock);
        const BlockScale next_scale = scale_of(c + kFeatureBlock, kFeatureBlock, next.largest());
        encode_whole_block<V, kFp8>(s, block, row + c, codes + r * ld_codes + c, &counters);
        block = next;
        s = next_scale;
      }
      encode_whole_block<V, kFp8>(s, block, row + c, codes + r * ld_codes + c, &counters);
      c += kFeatureBlock;
    }
    if (c == cols) continue;
    const BlockScale s = scale_of(c, cols - c, max_magnitude<V>(V::zero(), row + c, cols - c));
    encode_block_row<V, kFp8>(s, row + c, cols - c, codes + r * ld_codes + c, &counters);
  }
  counters.add_to(counts);
  peaks.add_to(counts);
}

template <class V, Elem kFp8, class X>
void quantize_weight_of(const Mat& x, int64_t rows, int64_t cols, float factor, uint8_t* codes,
                        int64_t ld_codes, int8_t* exps, QuantCounts* counts, int64_t r0,
                        int64_t r1) {
  const int64_t blocks = (cols + kWeightBlock - 1) / kWeightBlock;
  if (r1 > rows) r1 = rows;
  Counters<V> counters;
  Peaks peaks;
  for (int64_t r = r0; r < r1; r += kWeightBlock) {
    const int64_t end = r1 - r < kWeightBlock ? r1 : r + kWeightBlock;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t c = b * kWeightBlock;
      const int64_t n = cols - c < kWeightBlock ? cols - c : kWeightBlock;
      V m = V::zero();
      for (int64_t i = r; i < end; ++i) m = max_magnitude<V>(m, row_of<X>(x, i) + c, n);
      uint32_t amax = m.reduce_max_int();
      const bool has_nan = amax > 0x7F800000u;
      if (has_nan) {
        m = V::zero();
        for (int64_t i = r; i < end; ++i) m = max_number<V>(m, row_of<X>(x, i) + c, n);
        amax = bits_of(m.reduce_max());
      }
      BlockScale s = block_scale<kFp8>(amax, has_nan, factor);
      s.counted = counts != nullptr && amax != 0;
      exps[r / kWeightBlock * blocks + b] = static_cast<int8_t>(s.exponent);
      peaks.take(amax, s.exponent);
      for (int64_t i = r; i < end; ++i)
        encode_block_row<V, kFp8>(s, row_of<X>(x, i) + c, n, codes + i * ld_codes + c, &counters);
    }
  }
  counters.add_to(counts);
  peaks.add_to(counts);
}

template <class V>
void quant_encode(Elem fp8, const float* x, int64_t n, uint8_t* codes,
                  QuantCounts* counts) noexcept {
  Counters<V> counters;
  if (fp8 == Elem::kE5M2) {
    encode_run<V, Elem::kE5M2, true>(x, n, 1.0f, codes, &counters);
  } else {
    encode_run<V, Elem::kE4M3, true>(x, n, 1.0f, codes, &counters);
  }
  counters.add_to(counts);
}

template <class V>
void quant_decode(Elem fp8, const uint8_t* codes, int64_t n, float* x) noexcept {
  if (fp8 == Elem::kE5M2) {
    for_lanes(n, [&](int64_t j, auto lanes) {
      store(decode_lanes<V, Elem::kE5M2>(load_bytes<V>(codes + j, lanes)), x + j, lanes);
    });
  } else {
    for_lanes(n, [&](int64_t j, auto lanes) {
      store(decode_lanes<V, Elem::kE4M3>(load_bytes<V>(codes + j, lanes)), x + j, lanes);
    });
  }
}

// f(ElemTag<kE4M3>) or f(ElemTag<kE5M2>).
template <Elem kFp8>
struct ElemTag {
  static constexpr Elem value = kFp8;
};
template <class F>
LF_INLINE void with_fp8(Elem fp8, F f) {
  if (fp8 == Elem::kE5M2) {
    f(ElemTag<Elem::kE5M2>{});
  } else {
    f(ElemTag<Elem::kE4M3>{});
  }
}

template <class V>
void quant_rows(Elem fp8, Mat x, int64_t cols, float factor, uint8_t* codes, int64_t ld_codes,
                int8_t* exps, int64_t ld_exps, QuantCounts* counts, int64_t r0,
                int64_t r1) noexcept {
  with_elem(x.elem, [&]<class X>(Type<X>) {
    with_fp8(fp8, [&]<Elem kFp8>(ElemTag<kFp8>) {
      const auto choose = [=](uint32_t amax, bool has_nan) {
        return block_scale<kFp8>(amax, has_nan, factor);
      };
      quantize_rows_of<V, kFp8, X>(x, cols, choose, codes, ld_codes, exps, ld_exps, counts, r0, r1);
    });
  });
}

template <class V>
void quant_rows_at(Elem fp8, Mat x, int64_t cols, int exponent, uint8_t* codes, int64_t ld_codes,
                   int8_t* exps, int64_t ld_exps, QuantCounts* counts, int64_t r0,
                   int64_t r1) noexcept {
  with_elem(x.elem, [&]<class X>(Type<X>) {
    with_fp8(fp8, [&]<Elem kFp8>(ElemTag<kFp8>) {
      const auto choose = [=](uint32_t amax, bool has_nan) -> BlockScale {
        return {exponent, needs_guard<kFp8>(amax, has_nan, exponent)};
      };
      quantize_rows_of<V, kFp8, X>(x, cols, choose, codes, ld_codes, exps, ld_exps, counts, r0, r1);
    });
  });
}

template <class V>
float quant_amax_rows(Mat x, int64_t cols, int64_t r0, int64_t r1) noexcept {
  uint32_t amax = 0;
  with_elem(x.elem, [&]<class X>(Type<X>) {
    V m = V::zero();
    for (int64_t r = r0; r < r1; ++r) m = max_magnitude<V>(m, row_of<X>(x, r), cols);
    amax = m.reduce_max_int();
    if (amax <= 0x7F800000u) return;
    m = V::zero();
    for (int64_t r = r0; r < r1; ++r) m = max_number<V>(m, row_of<X>(x, r), cols);
    amax = bits_of(m.reduce_max());
  });
  return float_of(amax);
}

template <class V>
void quant_dequantize(Mat codes, int64_t cols, MatOut out, int64_t r0, int64_t r1) noexcept {
  with_elem(out.elem, [&]<class Y>(Type<Y>) {
    with_fp8(codes.elem, [&]<Elem kFp8>(ElemTag<kFp8>) {
      for (int64_t r = r0; r < r1; ++r) {
        const uint8_t* row = row_of<uint8_t>(codes, r);
        Y* to = row_of<Y>(out, r);
        for (int64_t c = 0; c < cols; c += kFeatureBlock) {
          const int64_t n = cols - c < kFeatureBlock ? cols - c : kFeatureBlock;
          const V scale = V::set1(power_of_two(codes.exps[r * codes.ld_exps + c / kFeatureBlock]));
          for_lanes(n, [&](int64_t j, auto lanes) {
            const V v = decode_lanes<V, kFp8>(load_bytes<V>(row + c + j, lanes));
            store(v * scale, to + c + j, lanes);
          });
        }
      }
    });
  });
}

template <class V, class D>
void quant_error_of(Mat x, Mat codes, int64_t cols, int64_t r0, int64_t r1,
                    QuantError* sums) noexcept {
  D errors = D::zero(), values = D::zero(), relatives = D::zero();
  V count = V::zero();
  const V largest = V::set1_bits(0x7F7FFFFFu), zero = V::zero(), one = V::set1(1.0f);
  with_elem(x.elem, [&]<class X>(Type<X>) {
    with_fp8(codes.elem, [&]<Elem kFp8>(ElemTag<kFp8>) {
      for (int64_t r = r0; r < r1; ++r) {
        const uint8_t* row = row_of<uint8_t>(codes, r);
        for (int64_t c = 0; c < cols; c += kFeatureBlock) {
          const int64_t n = cols - c < kFeatureBlock ? cols - c : kFeatureBlock;
          const V scale = V::set1(power_of_two(codes.exps[r * codes.ld_exps + c / kFeatureBlock]));
          for_lanes(n, [&](int64_t j, auto lanes) {
            const V v = load<V>(row_of<X>(x, r) + c + j, lanes);
            const V a = V::abs(v);
            // Infinities and NaN count as 0, and 0 as no value.
            const V finite = V::select_nan(a, zero, V::select_lt(largest, a, zero, v));
            const V kept = V::select_lt(zero, V::abs(finite), one, zero);
            const V decoded = decode_lanes<V, kFp8>(load_bytes<V>(row + c + j, lanes)) * scale;
            const V error = V::select_lt(zero, kept, decoded - finite, zero);
            errors.add_square(error);
            values.add_square(finite);
            relatives.add_square(error / V::select_lt(zero, kept, finite, one));
            count = V::count_lt(count, zero, kept);
          });
        }
      }
    });
  });
  sums->error_squares += errors.reduce_add();
  sums->value_squares += values.reduce_add();
  sums->relative_squares += relatives.reduce_add();
  sums->values += count.reduce_add_int();
}

template <class V>
void quant_weight(Elem fp8, Mat x, int64_t rows, int64_t cols, float factor, uint8_t* codes,
                  int64_t ld_codes, int8_t* exps, QuantCounts* counts, int64_t r0,
                  int64_t r1) noexcept {
  with_elem(x.elem, [&]<class X>(Type<X>) {
    with_fp8(fp8, [&]<Elem kFp8>(ElemTag<kFp8>) {
      quantize_weight_of<V, kFp8, X>(x, rows, cols, factor, codes, ld_codes, exps, counts, r0, r1);
    });
  });
}

// One block of at most 64: its absmax.
template <class V, class X>
LF_INLINE float nf4_block_codes(const X* x, int64_t n, uint8_t* codes) {
  constexpr float kSmallestNormal = 0x1p-126f;
  float absmax = float_of(max_magnitude<V>(V::zero(), x, n).reduce_max_int());
  if (absmax < kSmallestNormal) absmax = 0.0f;
  uint8_t wide[kNf4Block];
  if (absmax == 0.0f) {
    memset(wide, kNf4Zero, sizeof wide);
  } else {
    const V factor = V::set1(1.0f / absmax);
    for_lanes(n, [&](int64_t j, auto lanes) {
      const V v = load<V>(x + j, lanes) * factor;
      V above = V::zero();
#pragma GCC unroll 16
      for (int i = 0; i < 15; ++i) above = V::count_lt(above, V::set1(nf4_middle(i)), v);
      store_bytes(above, wide + j, lanes);
    });
  }
  if (n % 2 != 0) wide[n] = kNf4Zero;
  for (int64_t i = 0; i < n; i += 2)
    codes[i / 2] = static_cast<uint8_t>(wide[i] << 4 | wide[i + 1]);
  return absmax;
}

template <class V>
void quant_nf4(Mat x, int64_t cols, uint8_t* codes, int64_t ld_codes, float* absmax,
               int64_t ld_absmax, int64_t r0, int64_t r1) noexcept {
  with_elem(x.elem, [&]<class X>(Type<X>) {
    for (int64_t r = r0; r < r1; ++r) {
      const X* row = row_of<X>(x, r);
      for (int64_t c = 0; c < cols; c += kNf4Block) {
        const int64_t n = cols - c < kNf4Block ? cols - c : kNf4Block;
        absmax[r * ld_absmax + c / kNf4Block] =
            nf4_block_codes<V>(row + c, n, codes + r * ld_codes + c / 2);
      }
    }
  });
}

// Round to nearest even, subnormals kept: the upper half of each lane is the bf16 value.
template <class V>
LF_INLINE V round_to_bf16(V x) {
  const V odd = V::bit_and(V::template shift_right<16>(x), V::set1_bits(1u));
  const V rounded = V::add_int(V::add_int(x, V::set1_bits(0x7FFFu)), odd);
  return V::select_nan(x, V::bit_or(x, V::set1_bits(0x00400000u)), rounded);
}

template <class V>
LF_INLINE void store_high(V v, Bf16* p, Full) {
  v.store_high(p);
}
template <class V>
LF_INLINE void store_high(V v, Bf16* p, Part part) {
  v.store_high_part(p, part.n);
}

template <class V>
void quant_cast(const void* src, Elem from, void* dst, Elem to, int64_t n,
                bool as_operand) noexcept {
  if (from == to && !(to == Elem::kBf16 && as_operand)) {
    memmove(dst, src, static_cast<size_t>(n) * static_cast<size_t>(elem_bytes(from)));
    return;
  }
  with_elem(from, [&]<class X>(Type<X>) {
    const X* x = static_cast<const X*>(src);
    if (to == Elem::kF32) {
      for_lanes(n, [&](int64_t j, auto lanes) {
        store(load<V>(x + j, lanes), static_cast<float*>(dst) + j, lanes);
      });
    } else if (as_operand) {
      for_lanes(n, [&](int64_t j, auto lanes) {
        store(load<V>(x + j, lanes), static_cast<Bf16*>(dst) + j, lanes);
      });
    } else {
      for_lanes(n, [&](int64_t j, auto lanes) {
        store_high(round_to_bf16(load<V>(x + j, lanes)), static_cast<Bf16*>(dst) + j, lanes);
      });
    }
  });
}

template <class V>
void quant_f16_to_f32(const uint16_t* src, float* dst, int64_t n) noexcept {
  int64_t j = 0;
  for (; j + 16 <= n; j += 16) V::load_f16(src + j).store(dst + j);
  if (j < n)
    V::load_f16_part(src + j, static_cast<int>(n - j)).store_part(dst + j, static_cast<int>(n - j));
}

template <class V, class D>
constexpr QuantTable quant_table() {
  return {quant_encode<V>,  quant_decode<V>,    quant_rows<V>,       quant_weight<V>,
          quant_rows_at<V>, quant_amax_rows<V>, quant_dequantize<V>, quant_error_of<V, D>,
          quant_nf4<V>,     quant_cast<V>,      quant_f16_to_f32<V>};
}

}  // namespace
}  // namespace loongforge::kernels::generic
