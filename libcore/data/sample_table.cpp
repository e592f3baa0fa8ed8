#include "data/sample_table.h"

#include <algorithm>
#include <utility>

#include "data/tokenizer.h"

namespace loongforge::data {

int64_t Sample::trained_count() const {
  return std::count_if(trained.begin(), trained.end(), [](uint8_t t) { return t != 0; });
}

Sample SampleView::sample() const {
  Sample copy;
  copy.line = line;
  copy.ids.reserve(size());
  copy.trained.reserve(size());
  for (size_t t = 0; t < size(); ++t) {
    copy.ids.push_back(ids[t] / kIdScale);
    copy.trained.push_back(trained(t) ? 1 : 0);
  }
  return copy;
}

SampleEntry append_sample(const Sample& sample, std::vector<int32_t>& words) {
  SampleEntry entry;
  entry.at = words.size();
  entry.tokens = static_cast<uint32_t>(sample.ids.size());
  entry.trained = static_cast<uint32_t>(sample.trained_count());
  entry.line = sample.line;
  for (const int32_t id : sample.ids) words.push_back(id * kIdScale);
  for (size_t begin = 0; begin < sample.trained.size(); begin += 32) {
    uint32_t bits = 0;
    const size_t end = std::min(sample.trained.size(), begin + 32);
    for (size_t t = begin; t < end; ++t)
      bits |= static_cast<uint32_t>(sample.trained[t] != 0) << (t - begin);
    words.push_back(static_cast<int32_t>(bits));
  }
  return entry;
}

SampleTable SampleTableBuilder::finish() {
  struct Arrays {
    std::vector<int32_t> words;
    std::vector<SampleEntry> index;
  };
  auto arrays =
      std::make_shared<Arrays>(Arrays{std::exchange(words_, {}), std::exchange(index_, {})});
  const std::span<const int32_t> words = arrays->words;
  const std::span<const SampleEntry> index = arrays->index;
  return SampleTable(std::move(arrays), words, index);
}

SampleTable SampleTable::of(const std::vector<Sample>& samples) {
  SampleTableBuilder builder;
  for (const Sample& sample : samples) builder.add(sample);
  return builder.finish();
}

SampleSet::SampleSet(std::vector<SampleTable> tables) : tables_(std::move(tables)) {
  for (const SampleTable& table : tables_) starts_.push_back(starts_.back() + table.size());
}

SampleSet::SampleSet(std::vector<SampleTable> tables, std::vector<uint32_t> picks)
    : SampleSet(std::move(tables)) {
  picks_ = std::move(picks);
  picked_ = true;
}

int64_t SampleSet::longest() const {
  int64_t longest = 0;
  for (size_t i = 0; i < size(); ++i) longest = std::max(longest, tokens_of(i));
  return longest;
}

}  // namespace loongforge::data
