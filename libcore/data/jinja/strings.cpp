#include "data/jinja/strings.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "data/jinja/value.h"
#include "support/unicode.h"

namespace loongforge::data::jinja {
namespace {

using support::decode_utf8;

bool is_space_char(std::string_view c) {
  int length;
  uint32_t code = decode_utf8(c.data(), &length);
  return support::is_white_space(code) || (code >= 0x1C && code <= 0x1F);  // as str.isspace
}

// White space, or one of the given characters.
bool in_set(std::string_view c, const std::string* chars) {
  if (chars == nullptr) return is_space_char(c);
  for (size_t at = chars->find(c); at != std::string::npos; at = chars->find(c, at + 1))
    if ((static_cast<unsigned char>((*chars)[at]) & 0xC0) != 0x80) return true;
  return false;
}

size_t last_char(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

size_t first_length(std::string_view text) {
  int length;
  decode_utf8(text.data(), &length);
  return static_cast<size_t>(length);
}

}  // namespace

std::string_view strip(std::string_view text, const std::string* chars, bool left, bool right) {
  while (left && !text.empty()) {
    size_t length = first_length(text);
    if (!in_set(text.substr(0, length), chars)) break;
    text.remove_prefix(length);
  }
  while (right && !text.empty()) {
    size_t at = last_char(text);
    if (!in_set(text.substr(at), chars)) break;
    text = text.substr(0, at);
  }
  return text;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        int64_t count) {
  std::string out;
  size_t at = 0;
  if (from.empty()) {
    // Between all characters and at both ends.
    for (; count != 0; --count) {
      out += to;
      if (at >= text.size()) return out;
      size_t length = first_length(text.substr(at));
      out += text.substr(at, length);
      at += length;
    }
    return out + std::string(text.substr(at));
  }
  for (; count != 0; --count) {
    size_t found = text.find(from, at);
    if (found == std::string_view::npos) break;
    out += text.substr(at, found - at);
    out += to;
    at = found + from.size();
  }
  return out + std::string(text.substr(at));
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  size_t length = first_length(text);
  int unused;
  std::string out;
  support::append_title(out, decode_utf8(text.data(), &unused));
  return out + support::to_lower(text.substr(length));
}

std::string title_case(std::string_view text) {
  std::string out;
  bool after_letter = false;
  for (size_t i = 0; i < text.size();) {
    int length;
    uint32_t c = decode_utf8(text.data() + i, &length);
    i += static_cast<size_t>(length);
    bool cased = support::is_upper(c) || support::is_lower(c) || support::is_title(c);
    after_letter ? support::append_lower(out, c) : support::append_title(out, c);
    after_letter = cased;
  }
  return out;
}

std::string title_words(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (size_t i = 0; i < text.size();) {
    int length;
    uint32_t c = decode_utf8(text.data() + i, &length);
    bool breaks = c == '-' || c == '(' || c == '{' || c == '[' || c == '<' ||
                  is_space_char(text.substr(i, static_cast<size_t>(length)));
    i += static_cast<size_t>(length);
    at_start && !breaks ? support::append_upper(out, c) : support::append_lower(out, c);
    at_start = breaks;
  }
  return out;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    int length;
    uint32_t c = decode_utf8(text.data() + i, &length);
    size_t end = i;
    i += static_cast<size_t>(length);
    bool breaks = (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                  c == 0x2028 || c == 0x2029;
    if (!breaks) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(start, (keep_ends ? i : end) - start));
    start = i;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::vector<std::string_view> split_space(std::string_view text, int64_t limit, bool from_right) {
  std::vector<std::string_view> parts;
  text = strip(text, nullptr, true, true);
  while (!text.empty()) {
    if (limit-- == 0) {
      parts.push_back(text);
      break;
    }
    if (from_right) {
      size_t begin = text.size();
      while (begin > 0 && !is_space_char(text.substr(last_char(text.substr(0, begin)),
                                                     begin - last_char(text.substr(0, begin)))))
        begin = last_char(text.substr(0, begin));
      parts.push_back(text.substr(begin));
      text = strip(text.substr(0, begin), nullptr, false, true);
    } else {
      size_t end = 0;
      while (end < text.size() && !is_space_char(text.substr(end, first_length(text.substr(end)))))
        end += first_length(text.substr(end));
      parts.push_back(text.substr(0, end));
      text = strip(text.substr(end), nullptr, true, false);
    }
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_by(std::string_view text, std::string_view separator,
                                       int64_t limit, bool from_right) {
  std::vector<std::string_view> parts;
  if (separator.empty()) fault("split needs a separator that is not empty");
  while (limit-- != 0) {
    size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(from_right ? text.substr(at + separator.size()) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(at + separator.size());
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::string pad(std::string_view text, int64_t width, std::string_view fill, char where) {
  auto length = static_cast<int64_t>(support::count_code_points(text));
  if (support::count_code_points(fill) != 1) fault("the fill must be one character");
  if (width <= length) return std::string(text);
  if (width > 1'000'000) fault("a width of " + std::to_string(width) + " is too much");
  int64_t missing = width - length;
  // str.center puts the odd blank left when the width is odd.
  int64_t left = where == '<' ? 0 : where == '>' ? missing : missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (int64_t i = left; i < missing; ++i) out += fill;
  return out;
}

std::optional<int64_t> parse_int(std::string_view text, int base) {
  text = strip(text, nullptr, true, true);
  bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    char kind = static_cast<char>(text[1] | 0x20);
    int implied = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (implied != 0 && (base == implied || base == 0)) {
      base = implied;
      text.remove_prefix(2);
      if (text[0] == '_') text.remove_prefix(1);
    }
  }
  if (base == 0) base = 10;
  if (base < 2 || base > 36 || text.empty() || text.front() == '_' || text.back() == '_')
    return std::nullopt;
  std::string digits(negative ? "-" : "");
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_' && text[i - 1] == '_') return std::nullopt;
    if (text[i] != '_') digits += text[i];
  }
  if (digits.size() == 1 && negative) return std::nullopt;
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error == std::errc::result_out_of_range) fault("an integer leaves the range of 64 bits");
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_float(std::string_view text) {
  text = strip(text, nullptr, true, true);
  std::string digits;
  bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  std::string lower = support::to_lower(text);
  double value = 0;
  if (lower == "inf" || lower == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    auto digit = [](char c) { return c >= '0' && c <= '9'; };
    for (size_t i = 0; i < text.size(); ++i) {
      bool between = text[i] == '_' && i > 0 && i + 1 < text.size() && digit(text[i - 1]) &&
                     digit(text[i + 1]);
      if (text[i] == '_' && !between) return std::nullopt;
      if (text[i] != '_') digits += text[i];
    }
    if (digits.empty() || !(digit(digits[0]) || digits[0] == '.')) return std::nullopt;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (end != digits.data() + digits.size() || error == std::errc::invalid_argument)
      return std::nullopt;
    if (error == std::errc::result_out_of_range)
      value = digits.find("e-") != std::string::npos || digits.find("E-") != std::string::npos
                  ? 0.0
                  : std::numeric_limits<double>::infinity();
  }
  return negative ? -value : value;
}

}  // namespace loongforge::data::jinja
