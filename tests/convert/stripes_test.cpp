#include "convert/stripes.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstring>

#include "convert_support.h"
#include "support/expect_error.h"

using namespace loongforge;
using convert::RowSource;
using tensor::DType;

namespace {

float value(int64_t r, int64_t c) {
  return std::sin(static_cast<float>(r * 31 + c)) * static_cast<float>(1 + r / 128);
}

// fp32 rows made from their index; what is asked for is checked.
RowSource made_rows(int64_t rows, int64_t cols, std::optional<DType> stored = std::nullopt) {
  RowSource source;
  source.rows = rows;
  source.cols = cols;
  source.stored = stored;
  source.read_f32 = [rows, cols](int64_t r0, int64_t r1, std::span<float> out) {
    if (r0 % 128 != 0 || r1 > rows || out.size() != static_cast<size_t>((r1 - r0) * cols))
      throw std::logic_error("asked wrongly");
    for (int64_t r = r0; r < r1; ++r) {
      for (int64_t c = 0; c < cols; ++c)
        out[static_cast<size_t>((r - r0) * cols + c)] = value(r, c);
    }
  };
  source.read_raw = [read = source.read_f32](int64_t r0, int64_t r1, std::span<uint8_t> out) {
    std::vector<float> values(out.size() / 4);
    read(r0, r1, values);
    std::memcpy(out.data(), values.data(), out.size());
  };
  return source;
}

struct Result {
  std::vector<uint8_t> bytes;
  int64_t rows = 0, after = 0;
  convert::Converted converted;
};

Result run(const RowSource& source, DType target, int threads) {
  ThreadPool pool(threads);
  convert::StripeConverter converter(pool);
  Result result;
  result.converted = converter.run(
      source, target,
      [&](std::span<const uint8_t> rows, int64_t count) {
        result.bytes.insert(result.bytes.end(), rows.begin(), rows.end());
        result.rows += count;
      },
      [&](int64_t done) {
        CHECK(done > result.after);
        result.after = done;
      });
  return result;
}

}  // namespace

TEST_CASE("rows of any number and width arrive once and in order") {
  for (int64_t rows : {1, 127, 128, 129, 1000}) {
    for (int64_t cols : {1, 127, 130, 5000}) {
      CAPTURE(rows);
      CAPTURE(cols);
      const Result bf16 = run(made_rows(rows, cols), DType::kBF16, 2);
      CHECK(bf16.rows == rows);
      CHECK(bf16.after == rows);
      REQUIRE(bf16.bytes.size() == static_cast<size_t>(rows * cols * 2));
      for (int64_t i = 0; i < rows * cols; i += 97) {
        uint32_t bits = uint32_t{bf16.bytes[static_cast<size_t>(2 * i)]} << 16 |
                        uint32_t{bf16.bytes[static_cast<size_t>(2 * i + 1)]} << 24;
        float got;
        std::memcpy(&got, &bits, 4);
        REQUIRE(got == test::nearest_bf16(value(i / cols, i % cols)));
      }
      const Result same = run(made_rows(rows, cols, DType::kF32), DType::kF32, 1);
      REQUIRE(same.bytes.size() == static_cast<size_t>(rows * cols * 4));
      for (int64_t i = 0; i < rows * cols; i += 89) {
        float got;
        std::memcpy(&got, same.bytes.data() + 4 * i, 4);
        REQUIRE(got == value(i / cols, i % cols));
      }
    }
  }
}

TEST_CASE("FP8: a scale per block, the same codes for any number of threads") {
  const Result one = run(made_rows(700, 300), DType::kE4M3LA, 1),
               three = run(made_rows(700, 300), DType::kE4M3LA, 3);
  CHECK(one.bytes == three.bytes);
  CHECK(one.converted.scales == three.converted.scales);
  REQUIRE(one.converted.scales.size() == 6 * 3);
  for (int64_t i = 0; i < 700 * 300; i += 53) {
    const int64_t r = i / 300, c = i % 300;
    const double scale = one.converted.scales[static_cast<size_t>(r / 128 * 3 + c / 128)];
    const double got = test::e4m3la(one.bytes[static_cast<size_t>(i)]) * scale, want = value(r, c);
    REQUIRE(std::abs(got - want) <= std::max(std::abs(want) / 16.0, scale * 0x1p-15));
  }
}

TEST_CASE("an error of a reader reaches the caller") {
  RowSource source = made_rows(1000, 10);
  std::atomic<int> calls = 0;
  source.read_f32 = [&calls](int64_t r0, int64_t, std::span<float>) {
    ++calls;
    if (r0 >= 256) throw_bad_data("file", "row " + std::to_string(r0));
  };
  LF_CHECK_ERROR(run(source, DType::kBF16, 2), ErrorCode::kBadData, "row 256");
  CHECK(calls > 2);
  LF_CHECK_ERROR(run(made_rows(1, 1), DType::kI64, 1), ErrorCode::kFailed, "I64");
}
