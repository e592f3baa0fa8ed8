#include "data/mixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "support/expect_error.h"

namespace loongforge::data {
namespace {

using Sizes = std::vector<size_t>;

std::vector<size_t> counts(const std::vector<MixPick>& picks, size_t datasets) {
  std::vector<size_t> counts(datasets, 0);
  for (const MixPick& pick : picks) ++counts[pick.dataset];
  return counts;
}

// Every dataset's samples in file order, beginning again after the last.
void check_order(const std::vector<MixPick>& picks, const Sizes& sizes) {
  Sizes next(sizes.size(), 0);
  for (const MixPick& pick : picks) {
    REQUIRE(pick.sample == next[pick.dataset] % sizes[pick.dataset]);
    ++next[pick.dataset];
  }
}

TEST_CASE("concat: one after the other") {
  const auto picks = mix_datasets(Sizes{2, 3}, {});
  REQUIRE(picks.size() == 5);
  check_order(picks, {2, 3});
  CHECK(picks[1].dataset == 0);
  CHECK(picks[2].dataset == 1);
}

TEST_CASE("interleave_under: by weight, nothing twice, until one has nothing left") {
  const Sizes sizes = {20000, 20000};
  const auto picks = mix_datasets(sizes, {MixStrategy::kInterleaveUnder, {0.7, 0.3}, 42});
  const auto n = counts(picks, 2);
  check_order(picks, sizes);
  CHECK(n[0] == 20000);
  CHECK(n[1] < 20000);
  // Binomial: six standard deviations around 0.7.
  const double share = static_cast<double>(n[0]) / static_cast<double>(picks.size());
  CHECK(std::abs(share - 0.7) < 6 * std::sqrt(0.21 / static_cast<double>(picks.size())));
}

TEST_CASE("interleave_over: every sample at least once, the small one again and again") {
  const Sizes sizes = {1000, 10, 100};
  const auto picks = mix_datasets(sizes, {MixStrategy::kInterleaveOver, {}, 7});
  const auto n = counts(picks, 3);
  check_order(picks, sizes);
  for (size_t d = 0; d < 3; ++d) CHECK(n[d] >= sizes[d]);
  CHECK(n[0] == 1000);  // the largest is what ends it
  CHECK(n[1] > 800);
}

TEST_CASE("weights count by their ratio; the seed decides the order") {
  const auto order = [](std::vector<double> weights, uint64_t seed) {
    std::string text;
    for (const MixPick& pick :
         mix_datasets(Sizes{500, 500}, {MixStrategy::kInterleaveUnder, std::move(weights), seed}))
      text += static_cast<char>('a' + pick.dataset);
    return text;
  };
  CHECK(order({3, 1}, 1) == order({0.75, 0.25}, 1));
  CHECK(order({3, 1}, 1) != order({3, 1}, 2));
  CHECK(order({1, 1}, 1) == order({}, 1));
}

TEST_CASE("a draw is the same asked in any order") {
  const std::array<double, 3> weights = {1, 2, 3};
  DatasetDraw forward(weights, 5), back(weights, 5);
  std::vector<size_t> seen;
  for (uint64_t i = 0; i < 3000; ++i) seen.push_back(forward.at(2, i));
  for (uint64_t i = 3000; i-- > 0;) REQUIRE(back.at(2, i) == seen[i]);
  size_t other = 0;
  for (uint64_t i = 0; i < 3000; ++i) other += forward.at(3, i) != seen[i] ? 1 : 0;
  CHECK(other > 1000);
}

TEST_CASE("hold_out: a share or a count, by the seed, never everything") {
  const auto held = hold_out(1000, 0.1, 42);
  CHECK(std::count(held.begin(), held.end(), true) == 100);
  CHECK(hold_out(1000, 0.1, 42) == held);
  CHECK(hold_out(1000, 0.1, 43) != held);
  // Spread over the file: every tenth of it has some.
  for (size_t begin = 0; begin < 1000; begin += 100)
    CHECK(std::count(held.begin() + static_cast<ptrdiff_t>(begin),
                     held.begin() + static_cast<ptrdiff_t>(begin) + 100, true) > 0);
  const auto exact = hold_out(100, 0.07, 1);
  CHECK(std::count(exact.begin(), exact.end(), true) == 7);
  const auto share = hold_out(7, 0.1, 1), count = hold_out(7, 6, 1);
  CHECK(std::count(share.begin(), share.end(), true) == 1);
  CHECK(std::count(count.begin(), count.end(), true) == 6);
  LF_CHECK_ERROR(hold_out(7, 7, 1), ErrorCode::kUsage, "--val_size leaves nothing");
  LF_CHECK_ERROR(hold_out(1, 0.5, 1), ErrorCode::kUsage, "the dataset has 1 sample");
}

}  // namespace
}  // namespace loongforge::data
