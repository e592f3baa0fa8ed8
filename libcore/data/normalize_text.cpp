// Normalizers that rewrite single characters, edges or patterns.
#include <optional>
#include <utility>

#include "base/error.h"
#include "data/normalize_parts.h"
#include "data/rewrite.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::Json;
using support::Regex;

size_t char_size(std::string_view text, size_t at) {
  int length;
  support::decode_utf8(text.data() + at, &length);
  return static_cast<size_t>(length);
}

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(Segment& segment) const override {
    const std::string_view text = segment.text();
    if (text.empty()) return;
    Rewrite rewrite(segment);
    rewrite.put(prefix_, {0, char_size(text, 0)});  // it belongs to what it stands before
    rewrite.keep(0, text.size());
    rewrite.finish();
  }

 private:
  std::string prefix_;
};

class ReplaceLiteral : public Normalizer {
 public:
  ReplaceLiteral(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
  void apply(Segment& segment) const override {
    const std::string_view text = segment.text();
    size_t at = text.find(from_);
    if (at == text.npos) return;
    Rewrite rewrite(segment);
    size_t done = 0;
    for (; at != text.npos; at = text.find(from_, done)) {
      rewrite.keep(done, at);
      done = at + from_.size();
      rewrite.put(to_, {at, done});
    }
    rewrite.keep(done, text.size());
    rewrite.finish();
  }

 private:
  std::string from_, to_;
};

class ReplaceRegex : public Normalizer {
 public:
  ReplaceRegex(Regex regex, std::string to, std::string where)
      : regex_(std::move(regex)), to_(std::move(to)), where_(std::move(where)) {}
  void apply(Segment& segment) const override {
    const std::string_view text = segment.text();
    Regex::Matcher matcher;
    size_t begin, end, done = 0;
    if (!regex_.find(matcher, text, 0, &begin, &end)) return;
    Rewrite rewrite(segment);
    do {
      if (begin == end)
        throw_bad_data(where_, "normalizer Replace: the pattern '" + regex_.pattern() +
                                   "' matches nothing between characters, which is not supported");
      rewrite.keep(done, begin);
      rewrite.put(to_, {begin, end});
      done = end;
    } while (regex_.find(matcher, text, done, &begin, &end));
    rewrite.keep(done, text.size());
    rewrite.finish();
  }

 private:
  Regex regex_;
  std::string to_, where_;
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(Segment& segment) const override {
    const std::string_view text = segment.text();
    size_t first = text.size(), last = 0;  // around what is no white space
    for (size_t at = 0; at < text.size();) {
      int length;
      const bool space = support::is_white_space(support::decode_utf8(text.data() + at, &length));
      const size_t end = at + static_cast<size_t>(length);
      if (!space) {
        first = std::min(first, at);
        last = end;
      }
      at = end;
    }
    const size_t begin = left_ ? first : 0;
    const size_t end = right_ ? std::max(last, begin) : text.size();
    if (begin == 0 && end == text.size()) return;
    Rewrite rewrite(segment);
    rewrite.keep(begin, end);
    rewrite.finish();
  }

 private:
  bool left_, right_;
};

// Every character on its own: change(code point, out) appends what it becomes.
template <class Change>
void map_characters(Segment& segment, Change&& change) {
  const std::string_view text = segment.text();
  Rewrite rewrite(segment);
  std::string changed;
  for (size_t at = 0; at < text.size();) {
    int length;
    const uint32_t c = support::decode_utf8(text.data() + at, &length);
    const size_t end = at + static_cast<size_t>(length);
    changed.clear();
    change(c, changed);
    rewrite.put(changed, {at, end});
    at = end;
  }
  rewrite.finish();
}

class Lowercase : public Normalizer {
 public:
  void apply(Segment& segment) const override {
    map_characters(segment, [](uint32_t c, std::string& out) { support::append_lower(out, c); });
  }
};

class StripAccents : public Normalizer {
 public:
  void apply(Segment& segment) const override {
    map_characters(segment, [](uint32_t c, std::string& out) {
      if (!support::is_mark(c)) support::append_utf8(out, c);
    });
  }
};

}  // namespace

std::unique_ptr<Normalizer> make_prepend(const Json& json, const std::string&) {
  return std::make_unique<Prepend>(
      json.at("prepend", "normalizer Prepend").as_string("Prepend's prepend"));
}

std::unique_ptr<Normalizer> make_replace(const Json& json, const std::string& where) {
  const Json& pattern = json.at("pattern", "normalizer Replace");
  std::string to = json.at("content", "normalizer Replace").as_string("Replace's content");
  if (const Json* regex = pattern.find("Regex"))
    return std::make_unique<ReplaceRegex>(Regex(regex->as_string("Replace's Regex"), where),
                                          std::move(to), where);
  const std::string& literal =
      pattern.at("String", "normalizer Replace's pattern").as_string("Replace's String");
  if (literal.empty()) throw_bad_data(where, "normalizer Replace has an empty pattern");
  return std::make_unique<ReplaceLiteral>(literal, std::move(to));
}

std::unique_ptr<Normalizer> make_strip(const Json& json, const std::string&) {
  return std::make_unique<Strip>(
      json.at("strip_left", "normalizer Strip").as_bool("Strip's strip_left"),
      json.at("strip_right", "normalizer Strip").as_bool("Strip's strip_right"));
}

std::unique_ptr<Normalizer> make_lowercase() { return std::make_unique<Lowercase>(); }
std::unique_ptr<Normalizer> make_strip_accents() { return std::make_unique<StripAccents>(); }

}  // namespace loongforge::data
