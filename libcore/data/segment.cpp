#include "base/error.h"
#include "data/tokenizer_parts.h"

namespace loongforge::data {

void Segment::reset(std::string_view text, size_t offset, bool track_origins) {
  constexpr size_t kGrowth = 32, kLeast = 4096;
  text_ = text;
  offset_ = offset;
  room_ = kGrowth * text.size() + kLeast;
  track_ = track_origins;
  origins_.clear();
  pieces_.assign(1, Range{0, text.size()});
}

void Segment::reset_from(const Segment& whole, Range part) {
  text_ = whole.text_.substr(part.begin, part.end - part.begin);
  offset_ = whole.offset_ + part.begin;
  room_ = whole.room_;
  track_ = whole.track_;
  origins_.clear();
  if (!whole.origins_.empty())
    origins_.assign(whole.origins_.begin() + static_cast<ptrdiff_t>(part.begin),
                    whole.origins_.begin() + static_cast<ptrdiff_t>(part.end));
  pieces_.assign(1, Range{0, text_.size()});
}

void Segment::rewrite(std::string text, const std::vector<Range>& origins) {
  if (track_) {
    std::vector<Range> mapped(text.size());
    for (size_t i = 0; i < mapped.size(); ++i) mapped[i] = origin(origins[i]);
    origins_ = std::move(mapped);
  }
  owned_ = std::move(text);
  text_ = owned_;
}

Range Segment::origin(Range range) const {
  if (origins_.empty()) return {offset_ + range.begin, offset_ + range.end};
  if (range.begin >= range.end) {
    // An empty range stands where its byte, or the end of the text, came from.
    size_t at = range.begin < origins_.size() ? origins_[range.begin].begin : origins_.back().end;
    return {at, at};
  }
  return {origins_[range.begin].begin, origins_[range.end - 1].end};
}

void throw_unsupported_part(const std::string& where, std::string_view part, std::string_view type,
                            std::string_view known) {
  throw_bad_data(where, std::string(part) + " " + std::string(type) + " is not supported",
                 "supported: " + std::string(known));
}

}  // namespace loongforge::data
