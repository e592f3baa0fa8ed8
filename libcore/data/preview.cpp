// Samples for the eye, the trained-on tokens marked.
#include <cstdint>
#include <string>
#include <string_view>

#include "data/dataset.h"

namespace loongforge::data {
namespace {

void append_visible(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
      out.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    else
      out += c;
  }
}

// Calls part(text, trained) for each run of tokens that are alike.
template <class Part>
void for_each_part(const Sample& sample, const Tokenizer& tokenizer, Part&& part) {
  StreamDecoder decoder(tokenizer, false);
  std::string text;
  bool trained = false;
  const auto put = [&](std::string_view more, bool learnt) {
    if (more.empty()) return;
    if (learnt != trained && !text.empty()) {
      part(text, trained);
      text.clear();
    }
    trained = learnt;
    append_visible(text, more);
  };
  // A part of a character is shown with the token that ends it.
  for (size_t t = 0; t < sample.ids.size(); ++t)
    put(decoder.put(sample.ids[t]), sample.trained[t] != 0);
  put(decoder.finish(), trained);
  if (!text.empty()) part(text, trained);
}

}  // namespace

std::string preview(const Sample& sample, const Tokenizer& tokenizer, bool colour,
                    std::string_view place) {
  const char* open = colour ? "\x1b[1;32m" : "[[";
  const char* close = colour ? "\x1b[0m" : "]]";
  std::string out = std::string(place) + ": " + std::to_string(sample.ids.size()) + " tokens, " +
                    std::to_string(sample.trained_count()) + " trained on\n";
  for_each_part(sample, tokenizer, [&](const std::string& text, bool trained) {
    out += trained ? open + text + close : text;
  });
  if (!out.ends_with('\n')) out += '\n';
  return out;
}

support::Json preview_json(const Sample& sample, const Tokenizer& tokenizer) {
  support::Json json = support::Json::object(), parts = support::Json::array();
  json.set("tokens", static_cast<int64_t>(sample.ids.size()));
  json.set("trained_tokens", sample.trained_count());
  for_each_part(sample, tokenizer, [&](const std::string& text, bool trained) {
    support::Json part = support::Json::object();
    part.set("text", text);
    part.set("trained", trained);
    parts.push_back(std::move(part));
  });
  json.set("parts", std::move(parts));
  return json;
}

}  // namespace loongforge::data
