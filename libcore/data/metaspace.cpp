#include "data/metaspace.h"

#include <utility>

#include "base/error.h"
#include "data/rewrite.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::Json;

enum class Prepend { kFirst, kAlways, kNever };

struct Options {
  std::string replacement;
  Prepend prepend = Prepend::kAlways;
  bool split = true;
};

Options parse_options(const Json& json, const std::string& where) {
  Options options;
  options.replacement = json.at("replacement", "Metaspace").as_string("Metaspace's replacement");
  if (support::count_code_points(options.replacement) != 1)
    throw_bad_data(where, "Metaspace's replacement is not one character");
  // Older files say add_prefix_space alone.
  const char* otherwise = json.get_bool("add_prefix_space", true) ? "always" : "never";
  const std::string scheme = json.get_string("prepend_scheme", otherwise);
  if (scheme == "first") {
    options.prepend = Prepend::kFirst;
  } else if (scheme == "never") {
    options.prepend = Prepend::kNever;
  } else if (scheme != "always") {
    throw_unsupported_part(where, "Metaspace: prepend_scheme", scheme, "first, always, never");
  }
  options.split = json.get_bool("split", true);
  return options;
}

class Metaspace : public PreTokenizer {
 public:
  explicit Metaspace(Options options) : options_(std::move(options)) {}

  void apply(Segment& segment, support::Regex::Matcher&) const override {
    Rewrite rewrite(segment);
    std::vector<Range> pieces;
    for (const Range piece : segment.pieces()) {
      if (piece.begin == piece.end) continue;
      const size_t begin = rewrite.size();
      prepend(segment, piece, rewrite);
      replace_spaces(piece, rewrite);
      pieces.push_back({begin, rewrite.size()});
    }
    rewrite.finish();
    segment.pieces() = options_.split ? split(segment.text(), pieces) : std::move(pieces);
  }

 private:
  void prepend(const Segment& segment, Range piece, Rewrite& rewrite) const {
    if (options_.prepend == Prepend::kNever) return;
    const std::string_view text = segment.text().substr(piece.begin, piece.end - piece.begin);
    if (text[0] == ' ' || text.starts_with(options_.replacement)) return;
    int length;
    support::decode_utf8(text.data(), &length);
    const Range first = {piece.begin, piece.begin + static_cast<size_t>(length)};
    if (options_.prepend == Prepend::kFirst && segment.origin(first).begin != 0) return;
    rewrite.put(options_.replacement, first);  // it belongs to what it stands before
  }

  void replace_spaces(Range piece, Rewrite& rewrite) const {
    size_t done = piece.begin;
    const std::string_view text = rewrite.text().substr(0, piece.end);
    for (size_t at; (at = text.find(' ', done)) != text.npos; done = at + 1) {
      rewrite.keep(done, at);
      rewrite.put(options_.replacement, {at, at + 1});
    }
    rewrite.keep(done, piece.end);
  }

  // Before every replacement character.
  std::vector<Range> split(std::string_view text, const std::vector<Range>& pieces) const {
    std::vector<Range> out;
    out.reserve(pieces.size() + text.size() / 4);
    for (Range piece : pieces) {
      size_t begin = piece.begin;
      for (size_t at = begin + 1;
           (at = text.find(options_.replacement, at)) != text.npos && at < piece.end; ++at) {
        out.push_back({begin, at});
        begin = at;
      }
      out.push_back({begin, piece.end});
    }
    return out;
  }

  Options options_;
};

class MetaspaceDecoder : public Decoder {
 public:
  explicit MetaspaceDecoder(Options options) : options_(std::move(options)) {}

  void apply(std::vector<std::string>& tokens) const override {
    const bool drop_first = options_.prepend != Prepend::kNever;
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string text;
      size_t done = 0;
      for (size_t at; (at = tokens[i].find(options_.replacement, done)) != std::string::npos;
           done = at + options_.replacement.size()) {
        text.append(tokens[i], done, at - done);
        if (i > 0 || !drop_first) text += ' ';
      }
      text.append(tokens[i], done);
      tokens[i] = std::move(text);
    }
  }

 private:
  Options options_;
};

}  // namespace

MetaspacePreTokenizer make_metaspace(const Json& json, const std::string& where) {
  Options options = parse_options(json, where);
  const bool needs_origins = options.prepend == Prepend::kFirst;
  return {std::make_unique<Metaspace>(std::move(options)), needs_origins};
}

std::unique_ptr<Decoder> make_metaspace_decoder(const Json& json, const std::string& where) {
  return std::make_unique<MetaspaceDecoder>(parse_options(json, where));
}

}  // namespace loongforge::data
