// Sums, the scan for NaN and infinity, and FP8 words: element by element from their definitions, at
// every length and start, and bit for bit between ISAs.
#include "kernels/reduce.h"

#include "kernels/fp8_format.h"
#include "kernels/kernel_test.h"

namespace loongforge::kernels {
namespace {

using test::Bytes;
using test::TestMatrix;
using test::UseIsa;

// A row of n elements in patterned memory. Some are 0, some under the bf16 operand's threshold.
TestMatrix row_of(int64_t n, Elem elem, unsigned seed, int shift) {
  TestMatrix x(1, n, elem, 0, shift);
  std::mt19937 random(seed);
  x.fill(&random);
  for (int64_t j = 3; j < n; j += 11) x.set(0, j, 0.0f);
  for (int64_t j = 5; j < n; j += 13) x.set(0, j, std::ldexp(x.get(0, j), -54));
  return x;
}

// What a + b stored as elem has to be: fp32 sums of values that fp32 holds are those of double,
// rounded once.
float sum_of(float a, float b, Elem elem) {
  const float sum = static_cast<float>(static_cast<double>(a) + static_cast<double>(b));
  if (elem == Elem::kF32) return sum;
  if (std::fabs(sum) < 0x1p-55f) return 0.0f;
  int e = 0;
  const double m = std::frexp(static_cast<double>(sum), &e);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(m, 8)), e - 8));
}

TEST_CASE("reduce_into, reduce_two: exact, every length, start and element") {
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    INFO("isa: ", test::isa_label(isa));
    size_t wrong = 0, strays = 0;
    for (int64_t n = 0; n < 70; ++n) {
      const int shift = static_cast<int>(n % 5);
      for (const Elem from : test::float_elems()) {
        const TestMatrix x = row_of(n, from, 1, shift);
        const TestMatrix before = row_of(n, Elem::kF32, 2, shift + 1);
        TestMatrix sum = before;
        reduce_into(static_cast<float*>(sum.out().data), x.in().data, from, n);
        for (int64_t j = 0; j < n; ++j)
          wrong += sum.get(0, j) != sum_of(before.get(0, j), x.get(0, j), Elem::kF32);
        strays += !sum.surroundings_intact();
        for (const Elem other : test::float_elems()) {
          for (const Elem to : test::float_elems()) {
            const TestMatrix y = row_of(n, other, 3, shift + 2);
            TestMatrix out = row_of(n, to, 4, shift + 3);
            reduce_two(x.in().data, from, y.in().data, other, out.out().data, to, n);
            for (int64_t j = 0; j < n; ++j)
              wrong += out.get(0, j) != sum_of(x.get(0, j), y.get(0, j), to);
            strays += !out.surroundings_intact();
          }
        }
      }
    }
    CHECK(wrong == 0);
    CHECK(strays == 0);
  }
}

TEST_CASE("reduce_two: over an operand, and the same bits on every ISA") {
  constexpr int64_t kCount = 1003;
  for (const Elem elem : test::float_elems()) {
    test::check_same_on_every_isa([&] {
      const TestMatrix x = row_of(kCount, elem, 5, 1), before = row_of(kCount, elem, 6, 3);
      TestMatrix y = before;
      reduce_two(x.in().data, elem, y.in().data, elem, y.out().data, elem, kCount);
      size_t wrong = 0;
      for (int64_t j = 0; j < kCount; ++j)
        wrong += y.get(0, j) != sum_of(x.get(0, j), before.get(0, j), elem);
      CHECK(wrong == 0);
      return y.bytes();
    });
  }
}

TEST_CASE("find_non_finite: count and first, wherever they stand") {
  const float kinds[] = {NAN, -NAN, HUGE_VALF, -HUGE_VALF, test::float_of(0x7F800001u)};
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    INFO("isa: ", test::isa_label(isa));
    for (const Elem elem : test::float_elems()) {
      for (const int64_t n : {0, 1, 15, 17, 100, 4095, 4097, 9001}) {
        TestMatrix x = row_of(n, elem, 7, 1);
        for (int64_t j = 0; j < n; j += 7)  // the largest numbers are none
          x.set(0, j, elem == Elem::kF32 ? 0x1.fffffep127f : -0x1.fep127f);
        const NonFinite none = find_non_finite(x.in().data, elem, n);
        CHECK(none.nan == 0);
        CHECK(none.infinite == 0);
        CHECK(none.first == -1);
        std::mt19937 random(static_cast<unsigned>(n));
        for (int round = 0; round < 4 && n > 0; ++round) {
          for (int i = 0; i < 3; ++i)
            x.set(0, static_cast<int64_t>(random() % static_cast<unsigned long>(n)),
                  kinds[random() % 5]);
          NonFinite want;
          for (int64_t j = 0; j < n; ++j) {
            const float v = x.get(0, j);
            want.nan += std::isnan(v);
            want.infinite += std::isinf(v);
            if (want.first < 0 && !std::isfinite(v)) want.first = j;
          }
          const NonFinite got = find_non_finite(x.in().data, elem, n);
          CHECK(got.nan == want.nan);
          CHECK(got.infinite == want.infinite);
          CHECK(got.first == want.first);
          CHECK(find_non_finite(x.in().data, elem, want.first).first == -1);
        }
      }
    }
  }
}

TEST_CASE("pack_codes, unpack_codes: eight a word from its lowest byte on, zeros behind them") {
  std::mt19937 random(8);
  std::vector<uint8_t> codes(70);
  for (uint8_t& c : codes) c = static_cast<uint8_t>(random());
  for (int64_t n = 0; n < 60; ++n) {
    const uint8_t* from = codes.data() + n % 7;
    std::vector<uint64_t> words(static_cast<size_t>(words_of_codes(n)) + 1, ~uint64_t{0});
    pack_codes(from, n, words.data());
    CHECK(words.back() == ~uint64_t{0});
    size_t wrong = 0;
    for (int64_t i = 0; i < words_of_codes(n) * 8; ++i) {
      const uint64_t code = words[static_cast<size_t>(i / 8)] >> 8 * (i % 8) & 0xFF;
      wrong += code != (i < n ? from[i] : 0u);
    }
    CHECK(wrong == 0);
    std::vector<uint8_t> back(static_cast<size_t>(n) + 9, 0xA5);
    unpack_codes(words.data(), n, back.data() + 4);
    CHECK(std::equal(from, from + n, back.begin() + 4));
    CHECK(back[3] == 0xA5);
    CHECK(back[static_cast<size_t>(n) + 4] == 0xA5);
  }
}

TEST_CASE("pack_fp8, unpack_fp8: codes of quantize_rows, values of the format") {
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    INFO("isa: ", test::isa_label(isa));
    for (const Elem fp8 : {Elem::kE4M3, Elem::kE5M2}) {
      for (const Elem elem : test::float_elems()) {
        for (const int64_t n : {0, 1, 7, 8, 9, 127, 128, 129, 300, 1003}) {
          const TestMatrix x = row_of(n, elem, 9, 1);
          const auto blocks = static_cast<size_t>((n + kFeatureBlock - 1) / kFeatureBlock);
          std::vector<uint64_t> words(static_cast<size_t>(words_of_codes(n)) + 1, ~uint64_t{0});
          std::vector<int8_t> exps(blocks + 1, 99), want_exps(blocks + 1, 99);
          QuantCounts counts, want_counts;
          pack_fp8(fp8, x.in().data, elem, n, 1.0f, words.data(), exps.data(), &counts);
          std::vector<uint8_t> want(words.size() * 8);
          std::memset(want.data() + words_of_codes(n) * 8, 0xFF, 8);
          quantize_rows(fp8, x.in(), n, 1.0f, want.data(), n, want_exps.data(), n, &want_counts, 0,
                        n > 0 ? 1 : 0);
          CHECK(std::memcmp(words.data(), want.data(), want.size()) == 0);
          CHECK(exps == want_exps);
          CHECK(counts.zero == want_counts.zero);
          CHECK(counts.amax == want_counts.amax);

          for (const bool accumulate : {false, true}) {
            const TestMatrix before = row_of(n, Elem::kF32, 10, 2);
            TestMatrix y = before;
            unpack_fp8(fp8, words.data(), exps.data(), n, static_cast<float*>(y.out().data),
                       accumulate);
            size_t wrong = 0;
            for (int64_t j = 0; j < n; ++j) {
              const float value = test::float_of(
                  fp8 == Elem::kE4M3 ? fp8_decode_bits<Elem::kE4M3>(want[static_cast<size_t>(j)])
                                     : fp8_decode_bits<Elem::kE5M2>(want[static_cast<size_t>(j)]));
              const float scaled = std::ldexp(value, exps[static_cast<size_t>(j / kFeatureBlock)]);
              wrong += y.get(0, j) != (accumulate ? before.get(0, j) + scaled : scaled);
            }
            CHECK(wrong == 0);
            CHECK(y.surroundings_intact());
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace loongforge::kernels
