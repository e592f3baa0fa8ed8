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
  bool guard;  // encode with encode_run's kGuard
};

struct Peaks {
  float amax = 0.0f, peak = 0.0f;
  LF_INLINE void take(float block_amax, int exponent) {
    const float scaled = block_amax * power_of_two(-exponent);
    amax = amax > block_amax ? amax : block_amax;
    peak = peak > scaled ? peak : scaled;
  }
  LF_INLINE void add_to(QuantCounts* counts) const {
    if (counts == nullptr) return;
    counts->amax = counts->amax > amax ? counts->amax : amax;
    counts->peak = counts->peak > peak ? counts->peak : peak;
  }
};

// amax: the block's largest magnitude (infinity allowed), NaN left out.
template <Elem kFp8>
LF_INLINE int block_exponent(float amax, float factor) {
  using F = Fp8<kFp8>;
  constexpr float kLargestFloat = 0x1.fffffep+127f;
  if (amax == 0.0f) return 0;
  float wanted = amax * factor;
  if (!(wanted < kLargestFloat)) wanted = kLargestFloat;
  // kMax is 1.75 * 2^k for both formats: the exponent goes up one where the mantissa exceeds 1.75.
  constexpr uint32_t kUp = 0x007FFFFFu - 0x00600000u;
  const int binade = static_cast<int>((bits_of(wanted) + kUp) >> 23) - 127;
  const int of_max = static_cast<int>(bits_of(F::kMax) >> 23) - 127;
  const int e = binade - of_max;
  return e < kMinScaleExp ? kMinScaleExp : e;
}

template <Elem kFp8>
LF_INLINE BlockScale block_scale(float amax, bool has_nan, float factor) {
  const int e = block_exponent<kFp8>(amax, factor);
  return {e, has_nan || amax * power_of_two(-e) > Fp8<kFp8>::kMax};
}

template <class V, Elem kFp8, class X>
LF_INLINE void encode_block_row(const BlockScale& s, const X* x, int64_t n, uint8_t* codes,
                                Counters<V>* counters) {
  const float scale = power_of_two(-s.exponent);
  if (s.guard) {
    encode_run<V, kFp8, true>(x, n, scale, codes, counters);
  } else {
    encode_run<V, kFp8, false>(x, n, scale, codes, counters);
  }
}

// choose(amax, has_nan): the scale of a block. exps may be null.
template <class V, Elem kFp8, class X, class Choose>
LF_INLINE void quantize_rows_of(const Mat& x, int64_t cols, Choose choose, uint8_t* codes,
                                int64_t ld_codes, int8_t* exps, int64_t ld_exps,
                                QuantCounts* counts, int64_t r0, int64_t r1) {
  Counters<V> counters;
  Peaks peaks;
  for (int64_t r = r0; r < r1; ++r) {
    const X* row = row_of<X>(x, r);
    for (int64_t c = 0; c < cols; c += kFeatureBlock) {
      const int64_t n = cols - c < kFeatureBlock ? cols - c : kFeatureBlock;
      uint32_t amax = max_magnitude<V>(V::zero(), row + c, n).reduce_max_int();
      const bool has_nan = amax > 0x7F800000u;
      if (has_nan) amax = bits_of(max_number<V>(V::zero(), row + c, n).reduce_max());
      const BlockScale s = choose(float_of(amax), has_nan);
      if (exps != nullptr) exps[r * ld_exps + c / kFeatureBlock] = static_cast<int8_t>(s.exponent);
      peaks.take(float_of(amax), s.exponent);
      encode_block_row<V, kFp8>(s, row + c, n, codes + r * ld_codes + c, &counters);
    }
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
      const BlockScale s = block_scale<kFp8>(float_of(amax), has_nan, factor);
      exps[r / kWeightBlock * blocks + b] = static_cast<int8_t>(s.exponent);
      peaks.take(float_of(amax), s.exponent);
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
      const auto choose = [=](float amax, bool has_nan) {
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
      const auto choose = [=](float amax, bool has_nan) -> BlockScale {
        return {exponent, has_nan || amax * power_of_two(-exponent) > Fp8<kFp8>::kMax};
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
