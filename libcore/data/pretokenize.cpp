// Pre-tokenizers of tokenizer.json that split: Split, Digits, Whitespace, ByteLevel; and sequences.
#include <utility>

#include "base/error.h"
#include "data/metaspace.h"
#include "data/tokenizer_parts.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::Json;
using support::Regex;

constexpr const char* kKnown =
    "Split, Digits, Whitespace, WhitespaceSplit, Metaspace, ByteLevel, Sequence";
// What Whitespace keeps, and what WhitespaceSplit takes out.
constexpr const char* kWords = R"(\w+|[^\w\s]+)";
constexpr const char* kSpaces = R"(\s+)";
// GPT-2's pattern, which ByteLevel with use_regex splits by.
constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

Behavior parse_behavior(const std::string& name, const std::string& where) {
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  throw_unsupported_part(where, "pre_tokenizer Split: behavior", name,
                         "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

// A piece seen as alternating stretches of match and no match, turned into pieces by a behavior.
class SplitSink {
 public:
  SplitSink(Behavior behavior, std::vector<Range>& out) : behavior_(behavior), out_(out) {}

  void start_piece() { has_last_ = false; }

  void add(size_t begin, size_t end, bool match) {
    if (begin == end) return;
    bool merge = false;
    switch (behavior_) {
      case Behavior::kRemoved:
        if (match) {
          has_last_ = false;
          return;
        }
        break;
      case Behavior::kIsolated:
        break;
      case Behavior::kMergedWithPrevious:
        merge = match && !last_match_;
        break;
      case Behavior::kMergedWithNext:
        merge = !match && last_match_;
        break;
      case Behavior::kContiguous:
        merge = match == last_match_;
        break;
    }
    if (merge && has_last_) {
      out_.back().end = end;
    } else {
      out_.push_back({begin, end});
    }
    has_last_ = true;
    last_match_ = match;
  }

 private:
  Behavior behavior_;
  std::vector<Range>& out_;
  bool has_last_ = false, last_match_ = false;
};

class RegexSplit : public PreTokenizer {
 public:
  RegexSplit(Regex regex, Behavior behavior, bool invert)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert) {}

  void apply(Segment& segment, Regex::Matcher& matcher) const override {
    std::vector<Range> out;
    out.reserve(segment.pieces().size() + segment.text().size() / 4);
    SplitSink sink(behavior_, out);
    for (Range piece : segment.pieces()) {
      // Matching sees the piece alone: lookaheads end at its end.
      std::string_view text = segment.text().substr(piece.begin, piece.end - piece.begin);
      sink.start_piece();
      size_t done = 0, at = 0, begin, end;
      while (at <= text.size() && regex_.find(matcher, text, at, &begin, &end)) {
        sink.add(piece.begin + done, piece.begin + begin, invert_);
        sink.add(piece.begin + begin, piece.begin + end, !invert_);
        done = end;
        at = end > begin ? end : next_char(text, end);
      }
      sink.add(piece.begin + done, piece.end, invert_);
    }
    segment.pieces() = std::move(out);
  }

 private:
  static size_t next_char(std::string_view text, size_t at) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    return at;
  }

  Regex regex_;
  Behavior behavior_;
  bool invert_;
};

class LiteralSplit : public PreTokenizer {
 public:
  LiteralSplit(std::string literal, Behavior behavior, bool invert)
      : literal_(std::move(literal)), behavior_(behavior), invert_(invert) {}

  void apply(Segment& segment, Regex::Matcher&) const override {
    std::vector<Range> out;
    SplitSink sink(behavior_, out);
    for (Range piece : segment.pieces()) {
      std::string_view text = segment.text().substr(0, piece.end);
      sink.start_piece();
      size_t done = piece.begin;
      for (size_t at; (at = text.find(literal_, done)) != std::string_view::npos;
           done = at + literal_.size()) {
        sink.add(done, at, invert_);
        sink.add(at, at + literal_.size(), !invert_);
      }
      sink.add(done, piece.end, invert_);
    }
    segment.pieces() = std::move(out);
  }

 private:
  std::string literal_;
  Behavior behavior_;
  bool invert_;
};

class Digits : public PreTokenizer {
 public:
  explicit Digits(bool individual)
      : behavior_(individual ? Behavior::kIsolated : Behavior::kContiguous) {}

  void apply(Segment& segment, Regex::Matcher&) const override {
    std::vector<Range> out;
    SplitSink sink(behavior_, out);
    for (Range piece : segment.pieces()) {
      sink.start_piece();
      size_t done = piece.begin;
      for (size_t i = piece.begin; i < piece.end;) {
        int length;
        bool digit = support::is_numeric(support::decode_utf8(segment.text().data() + i, &length));
        size_t next = i + static_cast<size_t>(length);
        if (digit) {
          sink.add(done, i, false);
          sink.add(i, next, true);
          done = next;
        }
        i = next;
      }
      sink.add(done, piece.end, false);
    }
    segment.pieces() = std::move(out);
  }

 private:
  Behavior behavior_;
};

// ByteLevel's add_prefix_space: every piece begins with a space.
class PrefixSpace : public PreTokenizer {
 public:
  void apply(Segment& segment, Regex::Matcher&) const override {
    std::string text;
    std::vector<Range> origins, pieces;
    bool track = segment.tracks_origins();
    for (Range piece : segment.pieces()) {
      size_t begin = text.size();
      std::string_view old = segment.text().substr(piece.begin, piece.end - piece.begin);
      if (old.empty()) continue;
      if (old[0] != ' ') {
        text += ' ';
        if (track) origins.push_back({piece.begin, piece.begin});
      }
      text += old;
      for (size_t i = piece.begin; track && i < piece.end; ++i) origins.push_back({i, i + 1});
      pieces.push_back({begin, text.size()});
    }
    segment.rewrite(std::move(text), origins);
    segment.pieces() = std::move(pieces);
  }
};

class SequencePreTokenizer : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<std::unique_ptr<PreTokenizer>> parts)
      : parts_(std::move(parts)) {}
  void apply(Segment& segment, Regex::Matcher& matcher) const override {
    for (const auto& part : parts_) part->apply(segment, matcher);
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

std::unique_ptr<PreTokenizer> make_split(const Json& json, const std::string& where) {
  Behavior behavior = parse_behavior(
      json.at("behavior", "pre_tokenizer Split").as_string("Split's behavior"), where);
  bool invert = json.get_bool("invert", false);
  const Json& pattern = json.at("pattern", "pre_tokenizer Split");
  if (const Json* regex = pattern.find("Regex"))
    return std::make_unique<RegexSplit>(Regex(regex->as_string("Split's Regex"), where), behavior,
                                        invert);
  const std::string& literal =
      pattern.at("String", "pre_tokenizer Split's pattern").as_string("Split's String");
  if (literal.empty()) throw_bad_data(where, "pre_tokenizer Split has an empty pattern");
  return std::make_unique<LiteralSplit>(literal, behavior, invert);
}

// Appends the parts of one entry, sequences flattened.
void append_parts(const Json& json, const std::string& where,
                  std::vector<std::unique_ptr<PreTokenizer>>& parts, PreTokenizerParts& made) {
  const std::string& type = json.at("type", "pre_tokenizer").as_string("pre_tokenizer's type");
  if (made.byte_level)
    throw_bad_data(where, "pre_tokenizer " + type + " after ByteLevel is not supported");
  if (type == "Sequence") {
    for (const Json& part :
         json.at("pretokenizers", "pre_tokenizer Sequence").as_array("pretokenizers"))
      append_parts(part, where, parts, made);
  } else if (type == "Split") {
    parts.push_back(make_split(json, where));
  } else if (type == "Digits") {
    parts.push_back(std::make_unique<Digits>(json.get_bool("individual_digits", false)));
  } else if (type == "Whitespace" || type == "WhitespaceSplit") {
    const bool words = type == "Whitespace";
    parts.push_back(std::make_unique<RegexSplit>(Regex(words ? kWords : kSpaces, where),
                                                 Behavior::kRemoved, words));
  } else if (type == "Metaspace") {
    MetaspacePreTokenizer metaspace = make_metaspace(json, where);
    parts.push_back(std::move(metaspace.pre_tokenizer));
    made.needs_origins = made.needs_origins || metaspace.needs_origins;
  } else if (type == "ByteLevel") {
    made.byte_level = true;
    if (json.get_bool("add_prefix_space", true)) parts.push_back(std::make_unique<PrefixSpace>());
    if (json.get_bool("use_regex", true))
      parts.push_back(
          std::make_unique<RegexSplit>(Regex(kGpt2Pattern, where), Behavior::kIsolated, false));
  } else {
    throw_unsupported_part(where, "pre_tokenizer", type, kKnown);
  }
}

}  // namespace

PreTokenizerParts make_pre_tokenizer(const Json* json, const std::string& where) {
  PreTokenizerParts made;
  if (json == nullptr || json->is_null()) return made;
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  append_parts(*json, where, parts, made);
  if (parts.size() == 1) {
    made.pre_tokenizer = std::move(parts[0]);
  } else if (!parts.empty()) {
    made.pre_tokenizer = std::make_unique<SequencePreTokenizer>(std::move(parts));
  }
  return made;
}

}  // namespace loongforge::data
