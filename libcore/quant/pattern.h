// Glob patterns over layers, and the PATTERN=VALUE lists of --fp8_scale_override,
// --precision_override and --quantize_override. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.h"

namespace loongforge::quant {

// Glob match over the whole text: '*' any run, '?' any one character.
LF_API bool glob_match(std::string_view pattern, std::string_view text) noexcept;

// A pattern may name a tensor ("*.down_proj.weight") or its layer ("*.down_proj").
LF_API bool layer_match(std::string_view pattern, std::string_view tensor) noexcept;

// Of patterns of which the first that matches counts: the first one that counts for no name at all.
// shadowed: it matches some, but an earlier one takes them all.
struct UnusedPattern {
  size_t index = 0;
  bool shadowed = false;
};
LF_API std::optional<UnusedPattern> unused_pattern(const std::vector<std::string>& patterns,
                                                   const std::vector<std::string>& names);

struct PatternValue {
  std::string pattern, value;
};
// "A=x,B=y" in order; Error(kUsage) naming the flag for an item without pattern, = or value.
LF_API std::vector<PatternValue> parse_pattern_values(std::string_view list, std::string_view flag);

}  // namespace loongforge::quant
