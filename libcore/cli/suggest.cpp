#include "cli/suggest.h"

#include <algorithm>
#include <vector>

namespace loongforge::cli {

int edit_distance(std::string_view a, std::string_view b) {
  // Rows of the usual table: two back (for swaps), one back, current.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  const auto lower = [](std::string_view text) {
    std::string copy(text);
    for (char& c : copy) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return copy;
  };
  constexpr size_t kLongest = 64;  // longer words are no misspelt names
  if (word.size() > kLongest) return {};
  const std::string wanted = lower(word);
  std::string best;
  int best_distance = 0;
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(wanted, lower(candidate));
    const int limit = static_cast<int>(std::max(word.size(), candidate.size())) / 3;
    if (distance <= limit && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                         std::string_view prefix) {
  const std::string found = nearest(word, candidates);
  return found.empty() ? std::string() : "did you mean " + std::string(prefix) + found + "?";
}

}  // namespace loongforge::cli
