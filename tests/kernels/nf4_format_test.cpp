// NF4's table, quantiser and decoder: bitsandbytes' results, the definition in float64, and the
// same bits on every ISA.
#include "kernels/nf4_format.h"

#include <cstring>

#include "formats/safetensors.h"
#include "kernels/kernel_test.h"
#include "kernels/quant.h"
#include "support/data.h"

namespace loongforge::kernels {
namespace {

using test::Bytes;
using test::TestMatrix;
using test::UseIsa;

TEST_CASE("nf4: the middles are the nearest fp32 and between their neighbours") {
  for (int i = 0; i < 15; ++i) {
    const double exact = (static_cast<double>(kNf4Values[i]) + kNf4Values[i + 1]) / 2;
    CHECK(nf4_middle(i) == static_cast<float>(exact));
    CHECK(nf4_middle(i) ==
          (kNf4Values[i] + kNf4Values[i + 1]) / 2);  // as bitsandbytes computes them
    CHECK(kNf4Values[i] < nf4_middle(i));
    CHECK(nf4_middle(i) < kNf4Values[i + 1]);
  }
}

TEST_CASE("nf4: bitsandbytes' codes, absmax and values") {
  const formats::SafetensorsFile file(loongforge::test::data_dir() / "kernels" / "nf4.safetensors");
  for (const char* name : {"n1", "n63", "n64", "n65", "n4097"}) {
    const std::string base(name);
    const std::vector<float> x = file.read_f32(file.at(base + ".input"));
    const std::vector<float> absmax = file.read_f32(file.at(base + ".single.absmax"));
    const std::vector<float> values = file.read_f32(file.at(base + ".single.dequantised"));
    const formats::StoredTensor& packed = file.at(base + ".single.packed");
    Bytes codes(packed.bytes);
    file.read_range(packed, 0, codes);
    const auto n = static_cast<int64_t>(x.size());
    REQUIRE(static_cast<int64_t>(codes.size()) == nf4_row_bytes(n));
    REQUIRE(static_cast<int64_t>(absmax.size()) == nf4_blocks(n));
    for (const Isa isa : testable_isas()) {
      const UseIsa use(isa);
      INFO("isa: ", test::isa_label(isa), " ", base);
      Bytes got(codes.size() + 1, 0xEE);
      std::vector<float> got_absmax(absmax.size() + 1, -7.0f);
      quantize_nf4({x.data(), n, Elem::kF32}, n, got.data(), nf4_row_bytes(n), got_absmax.data(),
                   nf4_blocks(n), 0, 1);
      CHECK(got.back() == 0xEE);
      CHECK(got_absmax.back() == -7.0f);
      got.pop_back();
      got_absmax.pop_back();
      CHECK(got == codes);
      CHECK(got_absmax == absmax);
    }
    std::vector<float> decoded(x.size());
    nf4_decode(codes.data(), absmax.data(), n, decoded.data());
    CHECK(decoded == values);
  }
}

// The nearest table value of x / absmax in float64; both neighbours where x stands in the middle to
// within the two fp32 roundings of x * (1 / absmax).
void check_code(float x, float absmax, int code) {
  const double scaled = static_cast<double>(x) / absmax;
  double nearest = 10;
  for (const float value : kNf4Values) nearest = std::min(nearest, std::fabs(scaled - value));
  const double distance = std::fabs(scaled - kNf4Values[code]);
  const double slack = 4 * std::ldexp(1.0, -24) * std::fabs(scaled);
  CHECK_MESSAGE(distance <= nearest + slack, x << " of " << absmax << " became " << code);
}

TEST_CASE("nf4: every ISA quantises rows of any length to the nearest value") {
  uint32_t seed = 40;
  for (const Elem elem : {Elem::kF32, Elem::kBf16}) {
    for (const int64_t cols : {1, 2, 15, 16, 17, 63, 64, 65, 66, 127, 200, 1000}) {
      TestMatrix x(5, cols, elem, cols + 3);
      std::mt19937 random(++seed);
      std::normal_distribution<float> normal(0.0f, 0.02f);
      for (int64_t i = 0; i < 5; ++i)
        for (int64_t j = 0; j < cols; ++j)
          x.set(i, j,
                i == 3 && j / 64 == 0 ? 0.0f
                : i == 4              ? std::ldexp(normal(random), -125)
                                      : normal(random));
      const int64_t ld = nf4_row_bytes(cols) + 2, blocks = nf4_blocks(cols);
      test::check_same_on_every_isa([&] {
        Bytes codes(static_cast<size_t>(5 * ld), 0xEE);
        std::vector<float> absmax(static_cast<size_t>(5 * (blocks + 1)), -7.0f);
        // In two calls, as a caller may.
        quantize_nf4(x.in(), cols, codes.data(), ld, absmax.data(), blocks + 1, 0, 2);
        quantize_nf4(x.in(), cols, codes.data(), ld, absmax.data(), blocks + 1, 2, 5);
        size_t stray = 0;
        for (int64_t i = 0; i < 5; ++i) {
          for (int64_t b = nf4_row_bytes(cols); b < ld; ++b)
            stray += codes[static_cast<size_t>(i * ld + b)] != 0xEE;
          stray += absmax[static_cast<size_t>(i * (blocks + 1) + blocks)] != -7.0f;
          if (cols % 2 == 1)
            stray += (codes[static_cast<size_t>(i * ld + cols / 2)] & 15) != kNf4Zero;
          for (int64_t j = 0; j < cols; ++j) {
            float largest = 0;
            for (int64_t k = j / 64 * 64; k < std::min(cols, j / 64 * 64 + 64); ++k)
              largest = std::max(largest, std::fabs(x.get(i, k)));
            if (largest < 0x1p-126f) largest = 0;
            const float got = absmax[static_cast<size_t>(i * (blocks + 1) + j / 64)];
            CHECK(got == largest);
            const int code = nf4_code_at(codes.data() + i * ld, j);
            if (largest == 0) {
              CHECK(code == kNf4Zero);
            } else {
              check_code(x.get(i, j), largest, code);
            }
          }
        }
        CHECK(stray == 0);
        Bytes all = codes;
        test::append(&all, absmax);
        return all;
      });
    }
  }
}

TEST_CASE("nf4: ties go to the lower value, and what is not finite shows in absmax") {
  std::vector<float> x(64, 0.0f);
  for (int i = 0; i < 15; ++i) x[static_cast<size_t>(i)] = nf4_middle(i);
  x[63] = -1.0f;
  for (const Isa isa : testable_isas()) {
    const UseIsa use(isa);
    Bytes codes(32);
    float absmax = 0;
    quantize_nf4({x.data(), 64, Elem::kF32}, 64, codes.data(), 32, &absmax, 1, 0, 1);
    CHECK(absmax == 1.0f);
    for (int i = 0; i < 15; ++i) CHECK(nf4_code_at(codes.data(), i) == i);
    for (const float bad : {static_cast<float>(NAN), HUGE_VALF, -HUGE_VALF}) {
      std::vector<float> y = x;
      y[40] = bad;
      quantize_nf4({y.data(), 64, Elem::kF32}, 64, codes.data(), 32, &absmax, 1, 0, 1);
      CHECK(!std::isfinite(absmax));
    }
  }
}

}  // namespace
}  // namespace loongforge::kernels
