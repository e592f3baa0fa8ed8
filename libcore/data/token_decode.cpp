// Decoders of tokenizer.json.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/byte_alphabet.h"
#include "data/byte_tokens.h"
#include "data/metaspace.h"
#include "data/tokenizer_parts.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::Json;
using support::Regex;

constexpr const char* kKnown = "ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip, Sequence";

class ByteLevelDecoder : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    // A token with a character outside the alphabet (an added one) stands for itself.
    for (std::string& token : tokens)
      if (auto bytes = alphabet_to_bytes(token)) token = std::move(*bytes);
  }
};

// What the reference does without a decoder: a space between tokens.
class SpaceJoin : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, 1, ' ');
  }
};

// Runs of byte tokens become the text that their bytes spell, or a replacement character a byte.
class ByteFallback : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    out.reserve(tokens.size());
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (support::find_invalid_utf8(bytes) == support::kUtf8Valid) {
        out.push_back(bytes);
      } else {
        out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      const int byte = byte_of_token(token);
      if (byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      flush();
      out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
  }
};

class Fuse : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string text;
    for (const std::string& token : tokens) text += token;
    tokens.assign(1, std::move(text));
  }
};

class ReplaceDecoder : public Decoder {
  static constexpr size_t kGrowth = 32, kLeastRoom = 4096;  // far above every real decoder

 public:
  ReplaceDecoder(std::string literal, std::unique_ptr<Regex> regex, std::string to)
      : literal_(std::move(literal)), regex_(std::move(regex)), to_(std::move(to)) {}

  void apply(std::vector<std::string>& tokens) const override {
    Regex::Matcher matcher;
    size_t room = kLeastRoom;
    for (const std::string& token : tokens) room += kGrowth * token.size();
    for (std::string& token : tokens) {
      std::string text;
      size_t begin, end, done = 0;
      while (find(matcher, token, done, &begin, &end)) {
        if (to_.size() > room)
          throw_bad_data({}, "the tokenizer's decoder Replace makes too much of its tokens");
        room -= to_.size();
        text.append(token, done, begin - done).append(to_);
        done = end;
      }
      if (done > 0) token = text.append(token, done);
    }
  }

 private:
  bool find(Regex::Matcher& matcher, const std::string& token, size_t from, size_t* begin,
            size_t* end) const {
    if (regex_ != nullptr) return regex_->find(matcher, token, from, begin, end) && *end > *begin;
    *begin = token.find(literal_, from);
    *end = *begin + literal_.size();
    return *begin != std::string::npos;
  }

  std::string literal_;
  std::unique_ptr<Regex> regex_;  // null: the literal
  std::string to_;
};

// Takes up to `start` and `stop` of one character off a token's ends.
class StripDecoder : public Decoder {
 public:
  StripDecoder(std::string content, int64_t start, int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}

  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::string_view text = token;
      for (int64_t i = 0; i < start_ && text.starts_with(content_); ++i)
        text.remove_prefix(content_.size());
      for (int64_t i = 0; i < stop_ && text.ends_with(content_); ++i)
        text.remove_suffix(content_.size());
      if (text.size() < token.size()) token = std::string(text);
    }
  }

 private:
  std::string content_;
  int64_t start_, stop_;
};

class SequenceDecoder : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<Decoder>> parts)
      : parts_(std::move(parts)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (const auto& part : parts_) part->apply(tokens);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

std::unique_ptr<Decoder> make_replace_decoder(const Json& json, const std::string& where) {
  const Json& pattern = json.at("pattern", "decoder Replace");
  std::string to = json.at("content", "decoder Replace").as_string("Replace's content");
  if (const Json* regex = pattern.find("Regex"))
    return std::make_unique<ReplaceDecoder>(
        "", std::make_unique<Regex>(regex->as_string("Replace's Regex"), where), std::move(to));
  std::string literal =
      pattern.at("String", "decoder Replace's pattern").as_string("Replace's String");
  if (literal.empty()) throw_bad_data(where, "decoder Replace has an empty pattern");
  return std::make_unique<ReplaceDecoder>(std::move(literal), nullptr, std::move(to));
}

std::unique_ptr<Decoder> make_strip_decoder(const Json& json, const std::string& where) {
  std::string content = json.at("content", "decoder Strip").as_string("Strip's content");
  if (support::count_code_points(content) != 1)
    throw_bad_data(where, "decoder Strip's content is not one character");
  return std::make_unique<StripDecoder>(std::move(content),
                                        json.at("start", "decoder Strip").as_int("Strip's start"),
                                        json.at("stop", "decoder Strip").as_int("Strip's stop"));
}

}  // namespace

std::unique_ptr<Decoder> make_decoder(const Json* json, const std::string& where) {
  if (json == nullptr || json->is_null()) return std::make_unique<SpaceJoin>();
  const std::string& type = json->at("type", "decoder").as_string("decoder's type");
  if (type == "ByteLevel") return std::make_unique<ByteLevelDecoder>();
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Metaspace") return make_metaspace_decoder(*json, where);
  if (type == "Replace") return make_replace_decoder(*json, where);
  if (type == "Strip") return make_strip_decoder(*json, where);
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Decoder>> parts;
    for (const Json& part : json->at("decoders", "decoder Sequence").as_array("decoders"))
      parts.push_back(make_decoder(&part, where));
    return std::make_unique<SequenceDecoder>(std::move(parts));
  }
  throw_unsupported_part(where, "decoder", type, kKnown);
}

}  // namespace loongforge::data
