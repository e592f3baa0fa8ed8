// The samples of a dataset's file, one after the other; it can go on from any place in it.
// Thread-safety: one thread. Invariants: memory does not grow with the file (its pages are given
// back), only with its longest record.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/api.h"
#include "base/file.h"
#include "data/dataset.h"
#include "data/record_reader.h"
#include "data/sample_builder.h"

namespace loongforge::data {

// Before the sample that next() gives.
struct SamplePlace {
  RecordPlace record;
  uint64_t given = 0;   // of that record: samples, or tokens (TextChunks::kPacked)
  int64_t samples = 0;  // given since the beginning
};

struct ContentHash {
  uint32_t crc = 0;   // CRC32C of the bytes
  uint64_t wide = 0;  // of another kind: together they tell files apart
};

class LF_API SampleReader {
 public:
  // The tokenizer and options.style.chat outlive the reader.
  SampleReader(const DatasetOptions& options, const Tokenizer& tokenizer);

  bool next(Sample& sample);  // false at the end, and after max_samples
  SamplePlace place() const;
  // A place that an equal reader of the same file was at; Error(kBadData) where it is none of it.
  void go_to(const SamplePlace& place);

  const DatasetCounts& counts() const { return counts_; }  // of what next() gave
  const std::filesystem::path& file() const { return path_; }
  uint64_t bytes() const { return file_.bytes().size(); }
  ContentHash content_hash() const;  // reads the whole file
  // CRC32C, going on from crc, of a small file's bytes; of a large one's size and of blocks all
  // over it: a file that is streamed is too large to be read for this.
  uint32_t sampled_hash(uint32_t crc) const;

 private:
  enum class Format { kAlpaca, kMessages, kShareGpt, kText };

  static Format format_of(const Record& record);
  bool packs() const {
    return format_ == Format::kText && options_.text_chunks == TextChunks::kPacked;
  }
  bool read_record();
  void split_text(std::string_view text);
  bool next_piece(Sample& sample);
  bool next_whole(Sample& sample);
  Sample answer_sample() const;
  void count(const Sample& sample);
  void give_back_pages();

  const DatasetOptions options_;
  const SampleBuilder builder_;
  std::filesystem::path path_;
  MappedFile file_;
  RecordReader reader_;
  std::optional<Format> format_;
  Record record_;
  RecordPlace record_place_;              // where record_ begins
  std::vector<std::string_view> chunks_;  // of record_; one, itself, where it is no text
  size_t chunks_given_ = 0;
  Sample document_;  // packed: tokens of the texts since the last piece; the rest is of record_
  size_t document_given_ = 0;
  int64_t samples_ = 0;
  uint64_t pages_kept_from_ = 0;
  DatasetCounts counts_;
};

}  // namespace loongforge::data
