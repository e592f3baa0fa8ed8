// Rewrites a segment's text from left to right, its origins with it: what normalizers and
// pre-tokenizers that change text share. A text that grows beyond the segment's room is
// Error(kBadData). Thread-safety: one per rewrite.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/tokenizer_parts.h"

namespace loongforge::data {

class Rewrite {
 public:
  explicit Rewrite(Segment& segment) : segment_(segment), track_(segment.tracks_origins()) {
    out_.reserve(segment.text().size() + segment.text().size() / 2 + 16);
  }

  std::string_view text() const { return segment_.text(); }  // the old text
  size_t size() const { return out_.size(); }                // of the new text so far

  // A part of the old text as it is.
  void keep(size_t begin, size_t end) {
    out_.append(segment_.text(), begin, end - begin);
    for (size_t i = begin; track_ && i < end; ++i) origins_.push_back({i, i + 1});
  }
  // New text for a part of the old.
  void put(std::string_view text, Range origin) {
    if (text.size() > segment_.room() - std::min(segment_.room(), out_.size()))
      throw_bad_data({}, "the tokenizer's normalizer makes too much of a text of " +
                             std::to_string(segment_.text().size()) + " bytes");
    out_ += text;
    if (track_) origins_.insert(origins_.end(), text.size(), origin);
  }
  void finish() { segment_.rewrite(std::move(out_), origins_); }

 private:
  Segment& segment_;
  std::string out_;
  std::vector<Range> origins_;
  bool track_;
};

}  // namespace loongforge::data
