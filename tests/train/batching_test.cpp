#include "train/batching.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace loongforge;

namespace {

data::SampleSet samples_of(const std::vector<size_t>& lengths) {
  std::vector<data::Sample> samples;
  for (size_t n : lengths) {
    data::Sample s;
    for (size_t t = 0; t < n; ++t) {
      s.ids.push_back(static_cast<int32_t>(10 * samples.size() + t));
      s.trained.push_back(t >= n / 2);
    }
    samples.push_back(std::move(s));
  }
  return data::SampleSet(data::SampleTable::of(samples));
}

}  // namespace

TEST_CASE("packing keeps every sample once and no row over the limit") {
  const auto samples = samples_of({50, 3, 20, 64, 30, 14, 64, 1, 44});
  const auto rows = train::make_rows(samples, true, 64);
  std::set<uint32_t> seen;
  for (const auto& row : rows) {
    size_t tokens = 0;
    for (uint32_t s : row) {
      CHECK(seen.insert(s).second);
      tokens += static_cast<size_t>(samples.tokens_of(s));
    }
    CHECK(tokens <= 64);
  }
  CHECK(seen.size() == samples.size());
  CHECK(rows.size() == 5);  // 290 tokens: no fewer rows of 64 could hold them
  CHECK(train::make_rows(samples, false, 64).size() == samples.size());
}

TEST_CASE("a batch is trained on the next token of the same document") {
  const auto samples = samples_of({4, 2});
  const std::vector<train::Row> rows = {{0, 1}};
  const graph::Batch b = train::collate(samples, rows);
  CHECK(b.ids == std::vector<int32_t>{0, 2, 4, 6, 20, 22});
  CHECK(b.targets == std::vector<int32_t>{-1, 4, 6, -1, 22, -1});
  CHECK(b.positions == std::vector<int32_t>{0, 1, 2, 3, 0, 1});
  CHECK(b.valid == 3);
  REQUIRE(b.documents.size() == 2);
  CHECK(b.documents[1].row == 4);
}

TEST_CASE("an epoch visits every row once, its last step is smaller") {
  const train::StepPlan plan(10, 2, 4, 2.0, -1, 42);
  CHECK(plan.steps_per_epoch() == 3);
  CHECK(plan.total_steps() == 6);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    std::multiset<uint32_t> seen;
    for (int64_t s = 0; s < 3; ++s) {
      const auto micro = plan.micro_batches(epoch * 3 + s);
      CHECK(micro.size() == (s == 2 ? 1u : 2u));
      for (const auto& m : micro) seen.insert(m.begin(), m.end());
    }
    CHECK(seen.size() == 10);
    CHECK(std::set<uint32_t>(seen.begin(), seen.end()).size() == 10);
  }
}

TEST_CASE("the order follows from seed and step alone") {
  const train::StepPlan a(100, 4, 8, 3, -1, 1), b(100, 4, 8, 3, -1, 1), other(100, 4, 8, 3, -1, 2);
  const auto last = a.micro_batches(30);
  a.micro_batches(0);
  CHECK(b.micro_batches(30) == last);
  CHECK(a.micro_batches(30) == last);
  CHECK(a.micro_batches(0) != a.micro_batches(a.steps_per_epoch()));
  CHECK(a.micro_batches(0) != other.micro_batches(0));
}

TEST_CASE("max_steps counts over epochs") {
  CHECK(train::StepPlan(10, 1, 4, 1.0, 7, 0).total_steps() == 7);
  CHECK(train::StepPlan(10, 1, 4, 0.1, -1, 0).total_steps() == 1);
  CHECK(train::StepPlan(10, 1, 4, 0.5, -1, 0).total_steps() == 2);
}
