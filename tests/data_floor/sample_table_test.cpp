#include "data/sample_table.h"

#include <doctest/doctest.h>

#include <string>

namespace loongforge::data {
namespace {

Sample sample_of(size_t tokens, int32_t first, size_t every, int64_t line) {
  Sample sample;
  sample.line = line;
  for (size_t t = 0; t < tokens; ++t) {
    sample.ids.push_back(first + static_cast<int32_t>(t));
    sample.trained.push_back(t > 0 && t % every == 0 ? 1 : 0);
  }
  return sample;
}

TEST_CASE("samples of every length around a word of mask bits come back as they went in") {
  std::vector<Sample> samples;
  for (const size_t tokens : {1, 31, 32, 33, 63, 64, 65, 1000})
    samples.push_back(
        sample_of(tokens, static_cast<int32_t>(100 * tokens), 3, static_cast<int64_t>(tokens) + 7));
  const SampleTable table = SampleTable::of(samples);
  REQUIRE(table.size() == samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    CAPTURE(i);
    const SampleView view = table[i];
    CHECK(view.ids[0] == 2 * samples[i].ids[0]);  // LoongIR ids are even
    CHECK(view.trained_tokens == samples[i].trained_count());
    const Sample back = view.sample();
    CHECK(back.ids == samples[i].ids);
    CHECK(back.trained == samples[i].trained);
    CHECK(back.line == samples[i].line);
    CHECK(table.tokens_of(i) == static_cast<int64_t>(samples[i].ids.size()));
  }
}

TEST_CASE("a set counts through its tables; picks repeat and reorder") {
  const SampleTable a = SampleTable::of({sample_of(2, 10, 1, 1), sample_of(3, 20, 1, 2)});
  const SampleTable b = SampleTable::of({sample_of(4, 30, 1, 1)});
  const SampleTable none = SampleTable::of({});
  const SampleSet all({a, none, b});
  REQUIRE(all.size() == 3);
  CHECK(all[2].ids[0] == 60);
  CHECK(all.table_of(2) == 2);
  CHECK(all.longest() == 4);
  const SampleSet some({a, none, b}, {2, 0, 2});
  REQUIRE(some.size() == 3);
  CHECK(some[0].ids[0] == 60);
  CHECK(some[1].ids[0] == 20);
  CHECK(some.tokens_of(2) == 4);
  CHECK(some.table_of(1) == 0);
  CHECK(SampleSet({a}, {}).empty());
  CHECK(SampleSet().empty());
  CHECK(SampleSet().longest() == 0);
}

}  // namespace
}  // namespace loongforge::data
