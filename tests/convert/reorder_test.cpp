#include "convert/reorder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

using namespace loongforge;
using convert::HeadOrder;
using convert::RowSource;

namespace {

RowSource rows_of(const std::vector<float>& values, int64_t rows, int64_t cols) {
  RowSource source;
  source.rows = rows;
  source.cols = cols;
  source.read_f32 = [&values, cols](int64_t r0, int64_t r1, std::span<float> out) {
    REQUIRE(out.size() == static_cast<size_t>((r1 - r0) * cols));
    std::copy_n(values.begin() + r0 * cols, out.size(), out.begin());
  };
  return source;
}

std::vector<float> read(const RowSource& rows, int64_t r0, int64_t r1) {
  std::vector<float> out(static_cast<size_t>((r1 - r0) * rows.cols));
  rows.read_f32(r0, r1, out);
  return out;
}

}  // namespace

TEST_CASE("reorder: pairs are i and i + head_dim / 2, any part of the rows, and back") {
  constexpr int64_t kHeads = 3, kHead = 8, kCols = 5;
  std::vector<float> values(kHeads * kHead * kCols);
  std::iota(values.begin(), values.end(), 0.0f);
  const RowSource pairs =
      convert::reorder_heads(rows_of(values, kHeads * kHead, kCols), kHeads, HeadOrder::kToPairs);
  const std::vector<float> all = read(pairs, 0, kHeads * kHead);
  for (int64_t h = 0; h < kHeads; ++h) {
    for (int64_t i = 0; i < kHead / 2; ++i) {
      for (int64_t half = 0; half < 2; ++half) {
        for (int64_t c = 0; c < kCols; ++c) {
          const size_t at = static_cast<size_t>((h * kHead + 2 * i + half) * kCols + c);
          const size_t from = static_cast<size_t>((h * kHead + half * kHead / 2 + i) * kCols + c);
          CHECK(all[at] == values[from]);
        }
      }
    }
  }
  for (int64_t r0 = 0; r0 < kHeads * kHead; ++r0) {
    const std::vector<float> one = read(pairs, r0, r0 + 1);
    CHECK(std::equal(one.begin(), one.end(), all.begin() + r0 * kCols));
  }
  const RowSource back =
      convert::reorder_heads(rows_of(all, kHeads * kHead, kCols), kHeads, HeadOrder::kFromPairs);
  CHECK(read(back, 0, kHeads * kHead) == values);
  // A bias: one row of elements.
  std::vector<float> bias(kHeads * kHead);
  std::iota(bias.begin(), bias.end(), 0.0f);
  const RowSource paired =
      convert::reorder_heads(rows_of(bias, 1, kHeads * kHead), kHeads, HeadOrder::kToPairs);
  CHECK(read(paired, 0, 1)[1] == 4.0f);
  CHECK(read(paired, 0, 1)[kHead + 2] == kHead + 1.0f);
}
