// Text for people: sizes, durations, columns. Pure functions; UTF-8 in and out, widths as a
// terminal shows them (CJK 2).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.h"

namespace loongforge::cli {

LF_API std::string human_bytes(uint64_t bytes);     // "823 B", "12.3 MB", "1.2 GB": powers of 1000
LF_API std::string human_count(uint64_t count);     // "134,515,008"
LF_API std::string human_duration(double seconds);  // "0.8s", "42s", "3m 05s", "2h 07m", "3d 04h"

LF_API int display_width(std::string_view text);
LF_API std::string pad_right(std::string_view text, int width);
LF_API std::string pad_left(std::string_view text, int width);
// Breaks at spaces so that no line is wider than width (longer words stand alone); lines after the
// first are indented.
LF_API std::string wrap(std::string_view text, int width, int indent);
// Control bytes become spaces, so that a foreign name cannot steer the terminal or break a line.
LF_API std::string one_line(std::string_view text);

// Columns padded to their widest cell, two spaces between; numbers (cells that start with a digit,
// sign or dot) align right.
class LF_API Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) {
    rows_.push_back(std::move(row));
  }  // REQUIRES as many cells as the header
  std::string render() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace loongforge::cli
