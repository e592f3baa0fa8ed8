#include "base/error.h"

#include <utility>

namespace loongforge {
namespace {

// A part may quote what a file holds: control characters (a line break, a terminal's escapes) are
// spelled out, and a part that is longer than any reader wants is cut.
std::string one_line(const std::string& text) {
  constexpr size_t kMost = 1000;
  constexpr const char* kHex = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto u = static_cast<unsigned char>(text[i]);
    // Not within a character of UTF-8: its continuation bytes are 10xxxxxx.
    if (out.size() >= kMost && (u & 0xC0) != 0x80) return out + "...";
    if (u < 0x20 || u == 0x7F) {
      out += "\\x";
      out += kHex[u >> 4];
      out += kHex[u & 15];
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

Error::Error(ErrorCode code, std::string where, std::string what, std::string hint)
    : code_(code), where_(std::move(where)), message_(std::move(what)), hint_(std::move(hint)) {
  if (!where_.empty()) line_ = one_line(where_) + ": ";
  line_ += one_line(message_);
  if (!hint_.empty()) line_ += "; " + one_line(hint_);
}

void throw_bad_data(std::string where, std::string what, std::string hint) {
  throw Error(ErrorCode::kBadData, std::move(where), std::move(what), std::move(hint));
}

void throw_no_input(std::string where, std::string what, std::string hint) {
  throw Error(ErrorCode::kNoInput, std::move(where), std::move(what), std::move(hint));
}

void throw_usage(std::string what, std::string hint) {
  throw Error(ErrorCode::kUsage, {}, std::move(what), std::move(hint));
}

void throw_failed(std::string where, std::string what, std::string hint) {
  throw Error(ErrorCode::kFailed, std::move(where), std::move(what), std::move(hint));
}

}  // namespace loongforge
