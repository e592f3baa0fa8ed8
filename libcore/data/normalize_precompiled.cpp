// The normalizer Precompiled: SentencePiece's replacements, one visible character at a time.
#include <utility>

#include "base/error.h"
#include "data/chars_map.h"
#include "data/normalize_parts.h"
#include "data/rewrite.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::Json;

std::string decode_base64(std::string_view text, const std::string& where) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  size_t end = text.size();
  while (end > 0 && text[end - 1] == '=') --end;
  for (char c : text.substr(0, end)) {
    static constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t digit = kDigits.find(c);
    if (digit == kDigits.npos)
      throw_bad_data(where, "normalizer Precompiled: precompiled_charsmap is no base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(CharsMap map) : map_(std::move(map)) {}

  void apply(Segment& segment) const override {
    const std::string_view text = segment.text();
    Rewrite rewrite(segment);
    for (size_t at = 0; at < text.size();) {
      const size_t end = support::grapheme_end(text, at);
      // Short clusters are looked up whole, what is not found character by character.
      const auto whole = end - at < kShort ? map_.find(text.substr(at, end - at)) : std::nullopt;
      if (whole) {
        rewrite.put(*whole, {at, end});
      } else {
        for (size_t c = at; c < end;) {
          int length;
          support::decode_utf8(text.data() + c, &length);
          const size_t next = c + static_cast<size_t>(length);
          const auto found = map_.find(text.substr(c, next - c));
          found ? rewrite.put(*found, {c, next}) : rewrite.keep(c, next);
          c = next;
        }
      }
      at = end;
    }
    rewrite.finish();
  }

 private:
  static constexpr size_t kShort = 6;
  CharsMap map_;
};

}  // namespace

std::unique_ptr<Normalizer> make_precompiled(const Json& json, const std::string& where) {
  const std::string& coded = json.at("precompiled_charsmap", "normalizer Precompiled")
                                 .as_string("Precompiled's precompiled_charsmap");
  return std::make_unique<Precompiled>(CharsMap::parse(decode_base64(coded, where), where));
}

}  // namespace loongforge::data
