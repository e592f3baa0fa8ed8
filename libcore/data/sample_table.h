// Tokenised samples side by side: one array of words instead of two vectors a sample, in memory or
// mapped from a token cache. A sample of n tokens is n LoongIR ids (even), then ceil(n / 32) words
// whose bits say which tokens are trained on (token t: bit t % 32 of word t / 32). The index says
// where each one begins.
// Thread-safety: immutable once built; copies share the words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/api.h"

namespace loongforge::data {

// One sample as it is made, and as it is shown.
struct LF_API Sample {
  std::vector<int32_t> ids;  // HF ids
  // Per token: 1 where this token is one that the model learns to produce; 0 for the first, which
  // has nothing before it.
  std::vector<uint8_t> trained;
  // In the file (JSONL, text), or the record's number from 1 (JSON array).
  int64_t line = 0;

  int64_t trained_count() const;
};

struct SampleEntry {
  uint64_t at = 0;  // its first word
  uint32_t tokens = 0, trained = 0;
  int64_t line = 0;
};
static_assert(sizeof(SampleEntry) == 24);  // as it stands in a token cache

inline uint64_t sample_words(uint64_t tokens) { return tokens + (tokens + 31) / 32; }

struct LF_API SampleView {
  std::span<const int32_t> ids;  // LoongIR ids
  const int32_t* bits = nullptr;
  int64_t line = 0;
  int64_t trained_tokens = 0;

  size_t size() const { return ids.size(); }
  bool trained(size_t t) const { return (static_cast<uint32_t>(bits[t / 32]) >> t % 32 & 1) != 0; }
  Sample sample() const;  // with HF ids
};

class LF_API SampleTable {
 public:
  SampleTable() = default;
  // owner keeps words and index alive. REQUIRES every entry to lie inside words.
  SampleTable(std::shared_ptr<const void> owner, std::span<const int32_t> words,
              std::span<const SampleEntry> index)
      : owner_(std::move(owner)), words_(words), index_(index) {}
  static SampleTable of(const std::vector<Sample>& samples);

  size_t size() const { return index_.size(); }
  SampleView operator[](size_t i) const {
    const SampleEntry& entry = index_[i];
    const auto ids = words_.subspan(entry.at, entry.tokens);
    return {ids, ids.data() + entry.tokens, entry.line, entry.trained};
  }
  int64_t tokens_of(size_t i) const { return index_[i].tokens; }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const int32_t> words_;
  std::span<const SampleEntry> index_;
};

// Appends the words of a sample; the entry's `at` counts from the beginning of words.
SampleEntry append_sample(const Sample& sample, std::vector<int32_t>& words);

class LF_API SampleTableBuilder {
 public:
  void add(const Sample& sample) { index_.push_back(append_sample(sample, words_)); }
  size_t size() const { return index_.size(); }
  SampleTable finish();  // the builder is empty after it

 private:
  std::vector<int32_t> words_;
  std::vector<SampleEntry> index_;
};

// Samples of one or several tables, in an order of its own: what a run trains or evaluates on.
class LF_API SampleSet {
 public:
  SampleSet() = default;
  explicit SampleSet(SampleTable table) : SampleSet(std::vector<SampleTable>{std::move(table)}) {}
  explicit SampleSet(std::vector<SampleTable> tables);  // all of them, table after table
  // picks: numbers counted through all tables; one may stand there more than once.
  SampleSet(std::vector<SampleTable> tables, std::vector<uint32_t> picks);

  size_t size() const { return picked_ ? picks_.size() : starts_.back(); }
  bool empty() const { return size() == 0; }
  SampleView operator[](size_t i) const {
    const auto [table, at] = place(i);
    return tables_[table][at];
  }
  int64_t tokens_of(size_t i) const {
    const auto [table, at] = place(i);
    return tables_[table].tokens_of(at);
  }
  size_t table_of(size_t i) const { return place(i).first; }
  int64_t longest() const;  // tokens of the longest sample; 0 when there is none

 private:
  std::pair<size_t, size_t> place(size_t i) const {
    const size_t number = picked_ ? picks_[i] : i;
    size_t table = 0;
    while (starts_[table + 1] <= number) ++table;
    return {table, number - starts_[table]};
  }

  std::vector<SampleTable> tables_;
  std::vector<size_t> starts_ = {0};  // number of each table's first sample, and of all
  std::vector<uint32_t> picks_;
  bool picked_ = false;
};

}  // namespace loongforge::data
