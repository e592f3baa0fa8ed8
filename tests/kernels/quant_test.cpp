// Codecs, quantisers and casts on every ISA, element by element against fp8_format.h and the
// definitions.
#include "kernels/quant.h"

#include "kernels/fp8_format.h"
#include "kernels/kernel_test.h"

namespace loongforge::kernels {
namespace {

using test::bits_of;
using test::Bytes;
using test::float_of;
using test::TestMatrix;
using test::UseIsa;

Fp8Code encode_one(Elem fp8, float x) {
  return fp8 == Elem::kE5M2 ? fp8_encode_bits<Elem::kE5M2>(bits_of(x))
                            : fp8_encode_bits<Elem::kE4M3>(bits_of(x));
}
float decode_one(Elem fp8, uint8_t code) {
  return float_of(fp8 == Elem::kE5M2 ? fp8_decode_bits<Elem::kE5M2>(code)
                                     : fp8_decode_bits<Elem::kE4M3>(code));
}
float largest(Elem fp8) {
  return fp8 == Elem::kE5M2 ? Fp8<Elem::kE5M2>::kMax : Fp8<Elem::kE4M3>::kMax;
}

// Every value, midpoint and their fp32 neighbours of both signs, specials, and random bit patterns.
std::vector<float> hard_values(Elem fp8) {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          HUGE_VALF,
                          -HUGE_VALF,
                          NAN,
                          -NAN,
                          float_of(0x7F800001u),
                          float_of(1u),
                          float_of(0x807FFFFFu),
                          3.4e38f,
                          1e-30f};
  for (int code = 0; code < 0x7C; ++code) {
    const float a = decode_one(fp8, static_cast<uint8_t>(code)),
                b = decode_one(fp8, static_cast<uint8_t>(code + 1));
    for (const float v : {a, a / 2 + b / 2}) {
      if (!std::isfinite(v)) continue;
      for (const float y : {v, std::nextafter(v, 0.0f), std::nextafter(v, HUGE_VALF)}) {
        x.push_back(y);
        x.push_back(-y);
      }
    }
  }
  for (const float v : {14.0f, 14.5f, 15.0f, 57344.0f, 61440.0f, 65536.0f})
    for (const float y : {v, std::nextafter(v, 0.0f), std::nextafter(v, HUGE_VALF)}) x.push_back(y);
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) x.push_back(float_of(static_cast<uint32_t>(random())));
  std::normal_distribution<float> normal(0.0f, 1.0f);
  for (int i = 0; i < 20000; ++i) x.push_back(normal(random));
  return x;
}

TEST_CASE("fp8_encode: every ISA gives the format's code, and counts what happened") {
  for (const Elem fp8 : {Elem::kE4M3, Elem::kE5M2}) {
    const std::vector<float> x = hard_values(fp8);
    QuantCounts want;
    for (const float v : x) {
      const Fp8Code c = encode_one(fp8, v);
      want.overflow += c.overflow ? 1 : 0;
      want.nan += std::isnan(v) ? 1 : 0;
      want.zero += v != 0.0f && (c.code & 0x7F) == 0 ? 1 : 0;
    }
    REQUIRE(want.overflow > 0);
    REQUIRE(want.zero > 0);
    for (const Isa isa : testable_isas()) {
      const UseIsa use(isa);
      INFO("isa: ", test::isa_label(isa), " elem: ", static_cast<int>(fp8));
      std::vector<uint8_t> codes(x.size() + 1, 0xEE);
      QuantCounts counts{1, 2, 3};
      fp8_encode(fp8, x.data(), static_cast<int64_t>(x.size()), codes.data(), &counts);
      size_t wrong = 0;
      for (size_t i = 0; i < x.size(); ++i) wrong += codes[i] != encode_one(fp8, x[i]).code;
      CHECK(wrong == 0);
      CHECK(codes.back() == 0xEE);
      CHECK(counts.overflow == want.overflow + 1);
      CHECK(counts.nan == want.nan + 2);
      CHECK(counts.zero == want.zero + 3);
      // Every length and start
      for (int64_t n = 0; n <= 33; ++n) {
        std::vector<uint8_t> part(40, 0xEE);
        fp8_encode(fp8, x.data() + 3, n, part.data() + 1, nullptr);
        for (int64_t i = 0; i < 39; ++i)
          CHECK(part[static_cast<size_t>(i + 1)] ==
                (i < n ? codes[static_cast<size_t>(i + 3)] : 0xEE));
      }
    }
  }
}

TEST_CASE("fp8_decode: all 256 codes on every ISA, every length") {
  for (const Elem fp8 : {Elem::kE4M3, Elem::kE5M2}) {
    std::vector<uint8_t> codes(256 + 40);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
    for (const Isa isa : testable_isas()) {
      const UseIsa use(isa);
      INFO("isa: ", test::isa_label(isa));
      for (int64_t n = 256; n < 256 + 40; ++n) {
        std::vector<float> x(static_cast<size_t>(n) + 2, -7.0f);
        fp8_decode(fp8, codes.data(), n, x.data() + 1);
        size_t wrong = x.front() != -7.0f || x.back() != -7.0f;
        for (int64_t i = 0; i < n; ++i)
          wrong += bits_of(x[static_cast<size_t>(i + 1)]) !=
                   bits_of(decode_one(fp8, static_cast<uint8_t>(i)));
        CHECK(wrong == 0);
      }
    }
  }
}

// The smallest exponent e >= kMinScaleExp with amax * factor <= max * 2^e, by trying.
int wanted_exponent(Elem fp8, float amax, float factor) {
  if (amax == 0.0f) return 0;
  const double target = std::min(static_cast<double>(amax * factor),
                                 static_cast<double>(std::numeric_limits<float>::max()));
  int e = kMinScaleExp;
  while (target > std::ldexp(static_cast<double>(largest(fp8)), e)) ++e;
  return e;
}

struct Quantised {
  std::vector<uint8_t> codes;
  std::vector<int8_t> exps;
  QuantCounts counts;
};

// What the documentation of quantize_rows and quantize_weight says, one element after another.
// at: the exponent of every block instead of the chosen one.
Quantised expected_quantisation(Elem fp8, const TestMatrix& x, float factor, int64_t block_rows,
                                int64_t ld_codes, const int* at = nullptr) {
  const int64_t blocks = (x.cols() + 127) / 128;
  Quantised q;
  q.codes.assign(static_cast<size_t>(x.rows() * ld_codes), 0xEE);
  for (int64_t r0 = 0; r0 < x.rows(); r0 += block_rows) {
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t r1 = std::min(x.rows(), r0 + block_rows),
                    c1 = std::min(x.cols(), (b + 1) * 128);
      float amax = 0.0f;
      for (int64_t r = r0; r < r1; ++r)
        for (int64_t c = b * 128; c < c1; ++c)
          if (!std::isnan(x.get(r, c))) amax = std::max(amax, std::fabs(x.get(r, c)));
      const int e = at ? *at : wanted_exponent(fp8, amax, factor);
      q.exps.push_back(static_cast<int8_t>(e));
      q.counts.amax = std::max(q.counts.amax, amax);
      q.counts.peak = std::max(q.counts.peak, std::ldexp(amax, -e));
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = b * 128; c < c1; ++c) {
          const float v = x.get(r, c);
          const Fp8Code code = encode_one(fp8, std::ldexp(v, -e));
          q.codes[static_cast<size_t>(r * ld_codes + c)] = code.code;
          q.counts.overflow += code.overflow ? 1 : 0;
          q.counts.nan += std::isnan(v) ? 1 : 0;
          q.counts.zero += v != 0.0f && (code.code & 0x7F) == 0 ? 1 : 0;
        }
      }
    }
  }
  return q;
}

void plant_hard_blocks(TestMatrix* x) {
  const int64_t r = x->rows(), c = x->cols();
  if (r < 3 || c < 40) return;
  for (int64_t j = 0; j < std::min<int64_t>(c, 128); ++j) x->set(0, j, 0.0f);  // an empty block
  for (int64_t j = 0; j < std::min<int64_t>(c, 128); ++j)
    x->set(1, j, 1e-38f);  // under the smallest scale
  x->set(2, 5, NAN);
  x->set(2, 7, -HUGE_VALF);
  if (c > 128) x->set(2, c - 1, 3.0e38f);
  if (c > 300) x->set(1, 300, -0.0f);
}

TEST_CASE("quantize_rows, quantize_weight: scales, codes and counts as documented, on every ISA") {
  std::mt19937 random(11);
  struct Shape {
    int64_t rows, cols;
  };
  for (const Elem fp8 : {Elem::kE4M3, Elem::kE5M2}) {
    for (const Elem elem : test::float_elems()) {
      for (const float factor : {1.0f, 0.3f, 1.5f}) {
        for (const Shape s : {Shape{1, 1}, Shape{3, 40}, Shape{5, 127}, Shape{4, 128},
                              Shape{7, 129}, Shape{131, 333}}) {
          TestMatrix x(s.rows, s.cols, elem, s.cols + 3);
          x.fill(&random, 0.05f);
          plant_hard_blocks(&x);
          const int64_t ld = s.cols + 5, blocks = (s.cols + 127) / 128;
          const Quantised rows = expected_quantisation(fp8, x, factor, 1, ld);
          const Quantised weight = expected_quantisation(fp8, x, factor, 128, ld);
          for (const Isa isa : testable_isas()) {
            const UseIsa use(isa);
            INFO("isa: ", test::isa_label(isa), " ", s.rows, " x ", s.cols, " factor ", factor);
            Quantised q;
            q.codes.assign(rows.codes.size(), 0xEE);
            q.exps.assign(rows.exps.size(), 99);
            const int64_t cut = s.rows / 2;
            quantize_rows(fp8, x.in(), s.cols, factor, q.codes.data(), ld, q.exps.data(), blocks,
                          &q.counts, 0, cut);
            quantize_rows(fp8, x.in(), s.cols, factor, q.codes.data(), ld, q.exps.data(), blocks,
                          &q.counts, cut, s.rows);
            CHECK(q.codes == rows.codes);
            CHECK(q.exps == rows.exps);
            CHECK(q.counts.overflow == rows.counts.overflow);
            CHECK(q.counts.nan == rows.counts.nan);
            CHECK(q.counts.zero == rows.counts.zero);
            CHECK(q.counts.amax == rows.counts.amax);
            CHECK(q.counts.peak == rows.counts.peak);

            Quantised w;
            w.codes.assign(weight.codes.size(), 0xEE);
            w.exps.assign(weight.exps.size(), 99);
            for (int64_t r = 0; r < s.rows; r += 128)
              quantize_weight(fp8, x.in(), s.rows, s.cols, factor, w.codes.data(), ld,
                              w.exps.data(), &w.counts, r, std::min(s.rows, r + 128));
            CHECK(w.codes == weight.codes);
            CHECK(w.exps == weight.exps);
            CHECK(w.counts.overflow == weight.counts.overflow);
            CHECK(w.counts.nan == weight.counts.nan);
            CHECK(w.counts.zero == weight.counts.zero);
            CHECK(w.counts.amax == weight.counts.amax);
            CHECK(w.counts.peak == weight.counts.peak);
          }
        }
      }
    }
  }
}

TEST_CASE(
    "quantize_rows: a factor of at least 1 never saturates; its scale is the smallest that does "
    "not") {
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    for (const Elem fp8 : {Elem::kE4M3, Elem::kE5M2}) {
      // amax exactly at, just below and just above the largest value times a power of two
      for (const int k : {-37, -3, 0, 9}) {
        const float top = std::ldexp(largest(fp8), k);
        for (const float amax : {top, std::nextafter(top, 0.0f), std::nextafter(top, HUGE_VALF)}) {
          std::vector<float> x(128, amax / 3);
          x[77] = -amax;
          std::vector<uint8_t> codes(128);
          int8_t e = 0;
          QuantCounts counts;
          quantize_rows(fp8, {x.data(), 128, Elem::kF32}, 128, 1.0f, codes.data(), 128, &e, 1,
                        &counts, 0, 1);
          CHECK(e == (amax > top ? k + 1 : k));
          CHECK(counts.overflow == 0);
          CHECK(decode_one(fp8, codes[77]) == -(amax > top ? largest(fp8) / 2 : largest(fp8)));
        }
      }
    }
  }
}

TEST_CASE("one scale for all: codes, counts, amax and the way back, on every ISA") {
  std::mt19937 random(12);
  for (const Elem fp8 : {Elem::kE4M3, Elem::kE5M2}) {
    for (const Elem elem : test::float_elems()) {
      for (const int64_t cols : {1, 40, 129, 333}) {
        const int64_t rows = 5, ld = cols + 5, blocks = (cols + 127) / 128;
        TestMatrix x(rows, cols, elem, cols + 3);
        x.fill(&random, 0.05f);
        plant_hard_blocks(&x);
        for (const int e : {-20, -7, 0}) {
          const Quantised want = expected_quantisation(fp8, x, 1.0f, 1, ld, &e);
          for (const Isa isa : testable_isas()) {
            const UseIsa use(isa);
            INFO("isa: ", test::isa_label(isa), " ", cols, " columns, exponent ", e);
            Quantised q;
            q.codes.assign(want.codes.size(), 0xEE);
            q.exps.assign(want.exps.size(), 99);
            quantize_rows_at(fp8, x.in(), cols, e, q.codes.data(), ld, q.exps.data(), blocks,
                             &q.counts, 0, rows);
            CHECK(q.codes == want.codes);
            CHECK(q.exps == want.exps);
            CHECK(q.counts.overflow == want.counts.overflow);
            CHECK(q.counts.zero == want.counts.zero);
            CHECK(q.counts.peak == want.counts.peak);
            CHECK(amax_rows(x.in(), cols, 0, rows) == want.counts.amax);
            std::vector<uint8_t> codes(want.codes.size(), 0xEE);
            quantize_rows_at(fp8, x.in(), cols, e, codes.data(), ld, nullptr, 0, nullptr, 0, rows);
            CHECK(codes == want.codes);

            std::vector<float> back(static_cast<size_t>(rows * cols), -7.0f);
            std::vector<Bf16> narrow(back.size());
            const Mat m{q.codes.data(), ld, fp8, q.exps.data(), blocks};
            dequantize_rows(m, cols, {back.data(), cols, Elem::kF32}, 0, rows);
            dequantize_rows(m, cols, {narrow.data(), cols, Elem::kBf16}, 0, rows);
            size_t wrong = 0;
            for (int64_t r = 0; r < rows; ++r)
              for (int64_t c = 0; c < cols; ++c) {
                const float v =
                    std::ldexp(decode_one(fp8, want.codes[static_cast<size_t>(r * ld + c)]), e);
                const size_t i = static_cast<size_t>(r * cols + c);
                wrong += !(back[i] == v || (std::isnan(back[i]) && std::isnan(v)));
                wrong += narrow[i].bits != round_operand(bits_of(v));
              }
            CHECK(wrong == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("scale_exponent is the one that a block gets") {
  for (const Elem fp8 : {Elem::kE4M3, Elem::kE5M2})
    for (const float factor : {0.25f, 1.0f, 1.2f})
      for (const float amax : {0.0f, 1e-38f, 1e-9f, 0.7f, 14.0f, 14.1f, 5e4f, 3e38f})
        CHECK(scale_exponent(fp8, amax, factor) == wanted_exponent(fp8, amax, factor));
}

TEST_CASE("quant_error: sums by their definition, the same bits on every ISA") {
  std::mt19937 random(13);
  for (const Elem fp8 : {Elem::kE4M3, Elem::kE5M2}) {
    for (const Elem elem : test::float_elems()) {
      const int64_t rows = 7, cols = 333, blocks = 3;
      TestMatrix x(rows, cols, elem, cols + 3);
      x.fill(&random, 0.05f);
      plant_hard_blocks(&x);
      std::vector<uint8_t> codes(static_cast<size_t>(rows * cols));
      std::vector<int8_t> exps(static_cast<size_t>(rows * blocks));
      quantize_rows_at(fp8, x.in(), cols, -9, codes.data(), cols, exps.data(), blocks, nullptr, 0,
                       rows);
      QuantError want;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) {
          const double v = x.get(r, c);
          if (!std::isfinite(v) || v == 0) continue;
          const double d =
              std::ldexp(decode_one(fp8, codes[static_cast<size_t>(r * cols + c)]), -9) - v;
          ++want.values;
          want.error_squares += d * d;
          want.value_squares += v * v;
          want.relative_squares += d / v * (d / v);
        }
      QuantError first;
      for (const Isa isa : testable_isas()) {
        const UseIsa use(isa);
        INFO("isa: ", test::isa_label(isa));
        QuantError got;
        const Mat m{codes.data(), cols, fp8, exps.data(), blocks};
        quant_error(x.in(), m, cols, 0, 4, &got);
        quant_error(x.in(), m, cols, 4, rows, &got);
        CHECK(got.values == want.values);
        CHECK(got.error_squares == doctest::Approx(want.error_squares).epsilon(1e-6));
        CHECK(got.value_squares == doctest::Approx(want.value_squares).epsilon(1e-9));
        CHECK(got.relative_squares == doctest::Approx(want.relative_squares).epsilon(1e-6));
        if (first.values == 0) first = got;
        CHECK(got.error_squares == first.error_squares);
        CHECK(got.value_squares == first.value_squares);
        CHECK(got.relative_squares == first.relative_squares);
      }
    }
  }
}

TEST_CASE("binade_histogram counts every step-th row") {
  std::mt19937 random(14);
  for (const Elem elem : test::float_elems()) {
    TestMatrix x(37, 70, elem, 73);
    x.fill(&random, 3.0f);
    x.set(16, 3, 0.0f);
    std::vector<int64_t> bins(kBinades, 5), want(kBinades, 5);
    for (int64_t r = 0; r < 37; r += 16)
      for (int64_t c = 0; c < 70; ++c) {
        const float v = std::fabs(x.get(r, c));
        ++want[static_cast<size_t>(v < 0x1p-126f ? 0 : std::ilogb(v) + 127)];
      }
    binade_histogram(x.in(), 70, 0, 37, 16, bins.data());
    CHECK(bins == want);
    CHECK(bins[0] > 5);
  }
}

TEST_CASE("cast: bf16 operands, bf16 files, widening, every length") {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          1.0f,
                          -1.0f,
                          HUGE_VALF,
                          -HUGE_VALF,
                          NAN,
                          float_of(0x7F800001u),
                          float_of(0xFFFFFFFFu),
                          0x1p-55f,
                          std::nextafter(0x1p-55f, 0.0f),
                          -0x1p-56f,
                          float_of(1),
                          float_of(0x00018000u),
                          3.4e38f};
  for (uint32_t u = 0x3F800000u; u < 0x3F830000u; u += 0x3FFF) x.push_back(float_of(u));
  for (uint32_t u = 0x3F808000u - 3; u < 0x3F808000u + 3; ++u) x.push_back(float_of(u));
  for (uint32_t u = 0x3F818000u - 3; u < 0x3F818000u + 3; ++u) x.push_back(float_of(u));
  std::mt19937 random(5);
  for (int i = 0; i < 5000; ++i) x.push_back(float_of(static_cast<uint32_t>(random())));
  // Nearest even by comparing the distances to both neighbours, in double.
  const auto nearest = [](float v, bool as_operand) -> uint16_t {
    if (std::isnan(v)) return static_cast<uint16_t>(bits_of(v) >> 16 | 0x40u);
    if (as_operand && std::fabs(v) < 0x1p-55f) return 0;
    const auto low = static_cast<uint16_t>(bits_of(v) >> 16);
    if (std::isinf(v)) return low;
    const auto high = static_cast<uint16_t>(low + 1);
    const double a = test::bf16_value({low});
    const double b =
        std::isinf(test::bf16_value({high})) ? std::copysign(0x1p128, a) : test::bf16_value({high});
    const double to_low = std::fabs(v - a), to_high = std::fabs(b - v);
    return to_low < to_high || (to_low == to_high && low % 2 == 0) ? low : high;
  };
  const auto n = static_cast<int64_t>(x.size());
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    INFO("isa: ", test::isa_label(isa));
    for (const bool as_operand : {false, true}) {
      for (int64_t length :
           {n, n - 7, int64_t{0}, int64_t{1}, int64_t{15}, int64_t{16}, int64_t{17}}) {
        std::vector<Bf16> y(static_cast<size_t>(length) + 1, Bf16{0x7777});
        cast(x.data(), Elem::kF32, y.data(), Elem::kBf16, length, as_operand);
        size_t wrong = y.back().bits != 0x7777;
        for (int64_t i = 0; i < length; ++i)
          wrong += y[static_cast<size_t>(i)].bits != nearest(x[static_cast<size_t>(i)], as_operand);
        CHECK(wrong == 0);
        std::vector<float> back(static_cast<size_t>(length) + 1, 5.0f);
        cast(y.data(), Elem::kBf16, back.data(), Elem::kF32, length, as_operand);
        CHECK(back.back() == 5.0f);
        wrong = 0;
        for (int64_t i = 0; i < length; ++i)
          wrong += bits_of(back[static_cast<size_t>(i)]) !=
                   static_cast<uint32_t>(y[static_cast<size_t>(i)].bits) << 16;
        CHECK(wrong == 0);
      }
    }
    // bf16 to bf16: a copy, or an operand.
    const std::vector<Bf16> small = {
        {0x0001}, {0x3F80}, {0x8100}, {static_cast<uint16_t>((127 - 55) << 7)}, {0x7FC0}};
    std::vector<Bf16> copy(5), operand(5);
    cast(small.data(), Elem::kBf16, copy.data(), Elem::kBf16, 5, false);
    cast(small.data(), Elem::kBf16, operand.data(), Elem::kBf16, 5, true);
    CHECK(std::memcmp(copy.data(), small.data(), 10) == 0);
    CHECK(operand[0].bits == 0);
    CHECK(operand[2].bits == 0);
    for (const size_t i : {1, 3, 4}) CHECK(operand[i].bits == small[i].bits);
    std::vector<float> same(x.size());
    cast(x.data(), Elem::kF32, same.data(), Elem::kF32, n, true);
    CHECK(std::memcmp(same.data(), x.data(), x.size() * 4) == 0);
  }
}

TEST_CASE("cast_f16_to_f32: all 65536 halves on every ISA") {
  std::vector<uint16_t> h(65536 + 5);
  for (size_t i = 0; i < h.size(); ++i) h[i] = static_cast<uint16_t>(i);
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    INFO("isa: ", test::isa_label(isa));
    std::vector<float> x(h.size() + 1, 3.0f);
    cast_f16_to_f32(h.data(), x.data(), static_cast<int64_t>(h.size()));
    CHECK(x.back() == 3.0f);
    size_t wrong = 0;
    for (size_t i = 0; i < h.size(); ++i) {
      const int exponent = h[i] >> 10 & 31, mantissa = h[i] & 1023;
      double want =
          exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
      if (exponent == 31) want = mantissa == 0 ? HUGE_VAL : NAN;
      if ((h[i] & 0x8000) != 0) want = -want;
      wrong += std::isnan(want) ? !std::isnan(x[i])
                                : (x[i] != want || std::signbit(x[i]) != std::signbit(want));
    }
    CHECK(wrong == 0);
  }
}

}  // namespace
}  // namespace loongforge::kernels
