#include "train/dropout.h"

#include <doctest/doctest.h>

#include <bit>
#include <vector>

using namespace loongforge;

TEST_CASE("masks keep the asked share, and depend on stream and micro-batch alone") {
  support::Sm4Random random(42);
  const train::DropoutMasks masks(random, 3);
  std::vector<uint8_t> bits(256 * 72), again(bits.size()), other(bits.size());
  masks.fill(1, 256, 72, 0.1, bits.data());
  int64_t kept = 0;
  for (uint8_t b : bits) kept += std::popcount(b);
  const double share = static_cast<double>(kept) / (256.0 * 72 * 8);
  CHECK(share == doctest::Approx(1.0 - 26.0 / 256.0).epsilon(0.01));  // 0.1 in steps of 1/256
  masks.fill(1, 256, 72, 0.1, again.data());
  CHECK(bits == again);
  masks.fill(2, 256, 72, 0.1, other.data());
  CHECK(bits != other);
  train::DropoutMasks(random, 4).fill(1, 256, 72, 0.1, other.data());
  CHECK(bits != other);
}

TEST_CASE("fewer rows are the beginning of more rows") {
  support::Sm4Random random(7);
  const train::DropoutMasks masks(random, 0);
  std::vector<uint8_t> few(5 * 9), many(50 * 9);
  masks.fill(4, 5, 9, 0.5, few.data());
  masks.fill(4, 50, 9, 0.5, many.data());
  CHECK(std::equal(few.begin(), few.end(), many.begin()));
}
