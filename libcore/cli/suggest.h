// "did you mean": the nearest of a list of words by edit distance. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/api.h"

namespace loongforge::cli {

// Insertions, deletions, substitutions and swaps of neighbours, each counting 1 (optimal string
// alignment).
LF_API int edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to word (the first of equals), ASCII case ignored; empty when none is near
// enough to be what was meant: more than a third of the longer word's letters differ.
LF_API std::string nearest(std::string_view word, std::span<const std::string> candidates);

// "did you mean NEAREST?" with prefix before the word, or empty.
LF_API std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                                std::string_view prefix = {});

}  // namespace loongforge::cli
