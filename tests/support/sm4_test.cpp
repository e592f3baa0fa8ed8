#include "support/sm4.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "support/expect_error.h"

using loongforge::ErrorCode;
using loongforge::support::sm4_encrypt_block;
using loongforge::support::Sm4Random;
using Block = std::array<uint8_t, 16>;

namespace {

Block encrypt(const Block& key, const Block& in) {
  Block out;
  sm4_encrypt_block(key, in, out);
  return out;
}

std::vector<uint8_t> take(Sm4Random& random, uint32_t stream, uint64_t step, uint64_t offset,
                          size_t n) {
  std::vector<uint8_t> out(n, 0xEE);
  random.bytes(stream, step, offset, out);
  return out;
}

}  // namespace

TEST_CASE("sm4: the example of GB/T 32907-2016") {
  Block key{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
            0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10};
  Block expected{0x68, 0x1e, 0xdf, 0x34, 0xd2, 0x06, 0x96, 0x5e,
                 0x86, 0xb3, 0xe9, 0x4f, 0x53, 0x6e, 0x42, 0x46};
  CHECK(encrypt(key, key) == expected);
}

TEST_CASE("sm4: bytes are the cipher of the documented counter blocks under the documented key") {
  uint64_t seed = 0x0102030405060708;
  Block key{1, 2, 3, 4, 5, 6, 7, 8};
  Sm4Random random(seed);
  Block counter{0xA1, 0xB2, 0xC3, 0xD4, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 0, 0, 0};
  for (uint32_t i : {0u, 1u, 255u, 256u, 0x01020304u, 0xFFFFFFFFu}) {
    for (int b = 0; b < 4; ++b)
      counter[12 + static_cast<size_t>(b)] = static_cast<uint8_t>(i >> (24 - 8 * b));
    Block expected = encrypt(key, counter);
    auto got = take(random, 0xA1B2C3D4, 0x1122334455667788, uint64_t{i} * 16, 16);
    CHECK(std::equal(got.begin(), got.end(), expected.begin()));
  }
}

TEST_CASE("sm4: the same bytes however they are asked for") {
  Sm4Random one(42), other(42);
  auto whole = take(one, 3, 7, 0, 5000);
  for (size_t piece : {1, 3, 15, 16, 17, 100, 1024, 4999}) {
    std::vector<uint8_t> joined;
    for (size_t at = 0; at < whole.size(); at += piece) {
      auto part = take(other, 3, 7, at, std::min(piece, whole.size() - at));
      joined.insert(joined.end(), part.begin(), part.end());
    }
    CHECK(joined == whole);
  }
  auto middle = take(other, 3, 7, 1234, 77);
  CHECK(std::equal(middle.begin(), middle.end(), whole.begin() + 1234));
}

TEST_CASE("sm4: seed, stream and step each give other bytes") {
  Sm4Random random(42), next(43);
  auto base = take(random, 1, 1, 0, 64);
  CHECK(take(next, 1, 1, 0, 64) != base);
  CHECK(take(random, 2, 1, 0, 64) != base);
  CHECK(take(random, 1, 2, 0, 64) != base);
  CHECK(take(random, 1, 1, 64, 64) != base);
  CHECK(take(random, 1, 1, 0, 64) == base);
}

TEST_CASE("sm4: the end of a stream is an error, not the start of the next") {
  Sm4Random random(1);
  constexpr uint64_t kEnd = uint64_t{1} << 36;
  CHECK(take(random, 1, 0, kEnd - 8, 8).size() == 8);
  std::vector<uint8_t> out(16);
  LF_CHECK_ERROR(random.bytes(1, 0, kEnd - 8, out), ErrorCode::kUsage, "2^36");
  LF_CHECK_ERROR(random.bytes(1, 0, ~uint64_t{0}, out), ErrorCode::kUsage, "2^36");
  std::vector<float> floats(1);
  LF_CHECK_ERROR(random.uniform(1, 0, uint64_t{1} << 62, floats), ErrorCode::kUsage, "2^36");
}

TEST_CASE("sm4: uniform floats") {
  Sm4Random random(9);
  std::vector<float> x(100000);
  random.uniform(5, 0, 0, x);
  double mean = 0, square = 0;
  for (float v : x) {
    REQUIRE(v >= 0.0f);
    REQUIRE(v < 1.0f);
    mean += v;
    square += double{v} * v;
  }
  mean /= static_cast<double>(x.size());
  square /= static_cast<double>(x.size());
  CHECK(std::abs(mean - 0.5) < 0.005);  // standard error 0.0009
  CHECK(std::abs(square - 1.0 / 3.0) < 0.005);
  std::vector<float> part(3000);
  random.uniform(5, 0, 12345, part);
  CHECK(std::equal(part.begin(), part.end(), x.begin() + 12345));
  auto raw = take(random, 5, 0, 4 * 77, 4);
  CHECK(x[77] == std::ldexp(static_cast<float>(raw[1] | raw[2] << 8 | raw[3] << 16), -24));
}

TEST_CASE("sm4: bounded integers are even and cover the range") {
  Sm4Random random(9);
  constexpr uint64_t kBound = 7;
  std::vector<uint64_t> x(70000);
  random.below(5, 1, 0, kBound, x);
  std::array<int, kBound> count{};
  for (uint64_t v : x) {
    REQUIRE(v < kBound);
    count[v]++;
  }
  for (int c : count) CHECK(std::abs(c - 10000) < 500);  // five standard deviations
  std::vector<uint64_t> part(600);
  random.below(5, 1, 511, kBound, part);
  CHECK(std::equal(part.begin(), part.end(), x.begin() + 511));
  std::vector<uint64_t> ones(10, 5);
  random.below(5, 1, 0, 1, ones);
  CHECK(ones == std::vector<uint64_t>(10, 0));
}

TEST_CASE("sm4: shuffles are permutations, the documented one, and fair") {
  Sm4Random random(11);
  std::vector<uint32_t> items(2000);
  std::iota(items.begin(), items.end(), 0u);
  std::vector<uint32_t> expected = items;
  std::vector<uint64_t> wide(items.begin(), items.end());
  random.shuffle(1, 3, std::span(items));
  random.shuffle(1, 3, std::span(wide));
  CHECK(std::equal(items.begin(), items.end(), wide.begin()));
  for (uint64_t i = expected.size() - 1; i >= 1; --i) {
    uint64_t j;
    random.below(1, 3, expected.size() - 1 - i, i + 1, std::span(&j, 1));
    std::swap(expected[i], expected[j]);
  }
  CHECK(items == expected);
  std::sort(items.begin(), items.end());
  for (uint32_t i = 0; i < items.size(); ++i) REQUIRE(items[i] == i);

  std::array<std::array<int, 4>, 4> seen{};  // seen[item][place]
  for (uint64_t epoch = 0; epoch < 8000; ++epoch) {
    std::array<uint32_t, 4> four{0, 1, 2, 3};
    random.shuffle(1, epoch, std::span<uint32_t>(four));
    for (size_t place = 0; place < 4; ++place) seen[four[place]][place]++;
  }
  for (const auto& row : seen) {
    for (int c : row) CHECK(std::abs(c - 2000) < 200);  // five standard deviations
  }
  std::span<uint32_t> none;
  random.shuffle(1, 0, none);
}
