#include "train/rounding.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace loongforge;

TEST_CASE("draws depend on seed, stream, step and element alone") {
  train::Sm4Rounding random(7, 3), same(7, 1), other(8, 1);
  std::vector<uint16_t> whole(1000), part(100), again(1000);
  random.fill(5, 11, 0, whole, 0);
  random.fill(5, 11, 333, part, 2);
  CHECK(std::equal(part.begin(), part.end(), whole.begin() + 333));
  same.fill(5, 11, 0, again, 0);
  CHECK(again == whole);
  other.fill(5, 11, 0, again, 0);
  CHECK(again != whole);
  same.fill(6, 11, 0, again, 0);
  CHECK(again != whole);
  same.fill(5, 12, 0, again, 0);
  CHECK(again != whole);
  double mean = 0;
  for (uint16_t d : whole) mean += d / 1000.0 / 65536.0;
  CHECK(std::abs(mean - 0.5) < 0.05);
}
