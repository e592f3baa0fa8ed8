// Python's string operations that both filters and methods use. Thread-safety: pure functions.
// REQUIRES: valid UTF-8 everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loongforge::data::jinja {

// strip(): chars null means white space. Sides: left, right.
std::string_view strip(std::string_view text, const std::string* chars, bool left, bool right);
// replace(): at most count replacements, all when count < 0. max_size bounds the result (Fault).
std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        int64_t count);
std::string capitalize(std::string_view text);
std::string title_case(std::string_view text);  // str.title()
std::string title_words(
    std::string_view text);  // the title filter: words begin after space, hyphen and brackets
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
std::vector<std::string_view> split_space(std::string_view text, int64_t limit, bool from_right);
std::vector<std::string_view> split_by(std::string_view text, std::string_view separator,
                                       int64_t limit, bool from_right);
// Pads to width characters; where: '<' text left, '>' text right, '^' centred as str.center does.
std::string pad(std::string_view text, int64_t width, std::string_view fill, char where);
// int("..."), float("..."): nothing when Python would refuse.
std::optional<int64_t> parse_int(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);

}  // namespace loongforge::data::jinja
