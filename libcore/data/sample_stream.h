// Samples of one or several datasets without an end, read as they are asked for: after the last one
// the next pass over the data begins. What --streaming trains on: memory does not grow with the
// files.
// Thread-safety: one thread. Invariants: the sequence follows from files, options and seed alone;
// in its first pass it is that of mix_datasets().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/api.h"
#include "data/mixture.h"
#include "data/sample_reader.h"
#include "support/json.h"

namespace loongforge::data {

class LF_API SampleStream {
 public:
  // each: options of every dataset, whose files names lists. held: so many samples from the
  // beginnings of the files, as evenly as may be, are never given by next(). The tokenizer and
  // each.style.chat outlive the stream.
  SampleStream(const std::vector<std::string>& names, const DatasetOptions& each,
               const MixRule& mix, uint64_t held, const Tokenizer& tokenizer);

  void next(Sample& sample);
  // The same, but false where the pass is over; the next one has begun then.
  bool next_of_pass(Sample& sample);
  bool at_begin_of_pass() const { return given_ == 0; }
  std::string last_file() const;  // that it was read from
  const SampleTable& held() const { return held_; }

  // A place that an equal stream was at, for checkpoints.
  support::Json place() const;
  void go_to(const support::Json& place, const std::string& where);

  // Of the files: all bytes of small ones, of large ones the size and blocks all over it.
  uint32_t content_hash() const;
  std::vector<std::string> files() const;

 private:
  struct Source {
    std::unique_ptr<SampleReader> reader;
    SamplePlace begin;  // after what is held out
    bool used_up = false;
  };

  void hold_out(uint64_t held);
  void begin_pass();
  bool take(Source& source, Sample& sample);

  MixStrategy strategy_;
  std::vector<Source> sources_;
  DatasetDraw draw_;
  SampleTable held_;
  uint64_t pass_ = 0, draws_ = 0, given_ = 0;  // the last two of this pass
  size_t last_ = 0;                            // the dataset that next() read
  size_t current_ = 0;                         // concat: the dataset that is read
};

}  // namespace loongforge::data
