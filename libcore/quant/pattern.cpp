#include "quant/pattern.h"

#include <algorithm>

#include "base/error.h"

namespace loongforge::quant {

bool glob_match(std::string_view pattern, std::string_view text) noexcept {
  // Backtracks to the last star only: linear in practice, quadratic at worst.
  size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool layer_match(std::string_view pattern, std::string_view tensor) noexcept {
  if (glob_match(pattern, tensor)) return true;
  const size_t dot = tensor.rfind('.');
  return dot != std::string_view::npos && glob_match(pattern, tensor.substr(0, dot));
}

std::optional<UnusedPattern> unused_pattern(const std::vector<std::string>& patterns,
                                            const std::vector<std::string>& names) {
  std::vector<bool> counts(patterns.size(), false), matches(patterns.size(), false);
  for (const std::string& name : names) {
    bool taken = false;
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (!layer_match(patterns[i], name)) continue;
      matches[i] = true;
      if (!taken) counts[i] = true;
      taken = true;
    }
  }
  for (size_t i = 0; i < patterns.size(); ++i)
    if (!counts[i]) return UnusedPattern{i, matches[i]};
  return std::nullopt;
}

std::vector<PatternValue> parse_pattern_values(std::string_view list, std::string_view flag) {
  std::vector<PatternValue> values;
  for (size_t begin = 0; begin < list.size();) {
    const size_t comma = std::min(list.find(',', begin), list.size());
    const std::string_view item = list.substr(begin, comma - begin);
    const size_t equals = item.rfind('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == item.size())
      throw_usage("--" + std::string(flag) + ": \"" + std::string(item) + "\" is not PATTERN=VALUE",
                  "as in --" + std::string(flag) + " \"*.down_proj=...\"");
    values.push_back({std::string(item.substr(0, equals)), std::string(item.substr(equals + 1))});
    begin = comma + 1;
  }
  return values;
}

}  // namespace loongforge::quant
