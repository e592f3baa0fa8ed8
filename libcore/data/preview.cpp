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

}  // namespace

std::string preview(const Sample& sample, const Tokenizer& tokenizer, bool colour) {
  const char* open = colour ? "\x1b[1;32m" : "[[";
  const char* close = colour ? "\x1b[0m" : "]]";
  std::string out = "record " + std::to_string(sample.line) + ": " +
                    std::to_string(sample.ids.size()) + " tokens, " +
                    std::to_string(sample.trained_count()) + " trained on\n";
  StreamDecoder decoder(tokenizer, false);
  bool marked = false;
  const auto mark = [&](bool wanted) {
    if (wanted != marked) out += wanted ? open : close;
    marked = wanted;
  };
  for (size_t t = 0; t < sample.ids.size(); ++t) {
    const std::string text = decoder.put(sample.ids[t]);
    if (text.empty()) continue;  // a part of a character: shown with the token that ends it
    mark(sample.trained[t] != 0);
    append_visible(out, text);
  }
  append_visible(out, decoder.finish());
  mark(false);
  if (!out.ends_with('\n')) out += '\n';
  return out;
}

}  // namespace loongforge::data
