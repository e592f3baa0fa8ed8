#include "cli/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdio>

namespace loongforge::cli {
namespace {

std::string format(const char* pattern, auto... values) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, pattern, values...);
  return buffer;
}

bool looks_numeric(std::string_view cell) {
  if (cell.empty()) return false;
  const char first = cell.front();
  return (first >= '0' && first <= '9') || first == '-' || first == '+' || first == '.';
}

}  // namespace

std::string human_bytes(uint64_t bytes) {
  if (bytes < 1000) return format("%u B", static_cast<unsigned>(bytes));
  static constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 999.95 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return format("%.1f %s", value, kUnits[unit]);
}

std::string human_count(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string human_duration(double seconds) {
  if (!(seconds > 0)) return "0s";
  if (seconds < 10) return format("%.1fs", seconds);
  constexpr double kLongest = 1e9;
  const auto whole = static_cast<long>(std::min(seconds, kLongest) + 0.5);
  if (whole < 60) return format("%lds", whole);
  if (whole < 3600) return format("%ldm %02lds", whole / 60, whole % 60);
  if (whole < 86400) return format("%ldh %02ldm", whole / 3600, whole / 60 % 60);
  return format("%ldd %02ldh", whole / 86400, whole / 3600 % 24);
}

int display_width(std::string_view text) {
  int width = 0;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t used =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (used <= 0) {  // an invalid byte: a terminal shows one replacement character
      ++width;
      ++at;
      continue;
    }
    width += utf8proc_charwidth(code);
    at += static_cast<size_t>(used);
  }
  return width;
}

std::string pad_right(std::string_view text, int width) {
  return std::string(text) +
         std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
}

std::string pad_left(std::string_view text, int width) {
  return std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ') +
         std::string(text);
}

std::string wrap(std::string_view text, int width, int indent) {
  std::string result;
  int used = 0;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    const int word_width = display_width(word);
    if (used > 0 && used + 1 + word_width > width) {
      result += "\n" + std::string(static_cast<size_t>(indent), ' ');
      used = 0;
    } else if (used > 0) {
      result += ' ';
      ++used;
    }
    result += word;
    used += word_width;
  }
  return result;
}

std::string one_line(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return result;
}

std::string Table::render() const {
  std::vector<int> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], display_width(row[column]));
  // A column is numeric when its first data cell is: header and cells then align alike.
  std::vector<bool> numeric(widths.size(), false);
  if (rows_.size() > 1)
    for (size_t column = 0; column < widths.size(); ++column)
      numeric[column] = looks_numeric(rows_[1][column]);
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      if (column > 0) line += "  ";
      line += numeric[column] ? pad_left(row[column], widths[column])
                              : pad_right(row[column], widths[column]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace loongforge::cli
