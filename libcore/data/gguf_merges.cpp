#include "data/gguf_merges.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "data/vocabulary.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::Json;

// Splits are tried at every character: far above every published vocabulary's longest token.
constexpr size_t kMaxTokenBytes = 4096;

struct Made {
  double score = 0;
  size_t left_chars = 0, right_chars = 0;
  int32_t left = -1, right = -1;
};

}  // namespace

Json merges_from_scores(const std::vector<std::string>& tokens, const std::vector<double>& scores,
                        const std::vector<bool>& takes_part, const std::string& where) {
  Vocabulary vocabulary;
  vocabulary.reserve(tokens.size(), 8 * tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id)
    if (takes_part[id] && !vocabulary.add(tokens[id], static_cast<int32_t>(id)))
      throw_bad_data(where, "tokenizer.ggml.tokens has '" + tokens[id] + "' twice");
  std::vector<Made> made;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    if (!takes_part[id]) continue;
    if (token.size() > kMaxTokenBytes)
      throw_bad_data(where, "token " + std::to_string(id) + " of " + std::to_string(token.size()) +
                                " bytes is too long to be taken apart");
    if (support::find_invalid_utf8(token) != support::kUtf8Valid)
      throw_bad_data(where, "token " + std::to_string(id) + " is not valid UTF-8");
    const size_t first = made.size(), chars = support::count_code_points(token);
    int length;
    size_t at = 0;
    for (size_t left_chars = 1; left_chars < chars; ++left_chars) {
      support::decode_utf8(token.data() + at, &length);
      at += static_cast<size_t>(length);
      const int32_t left = vocabulary.find(token.substr(0, at));
      const int32_t right = left < 0 ? -1 : vocabulary.find(token.substr(at));
      if (right >= 0) made.push_back({scores[id], left_chars, chars - left_chars, left, right});
    }
    std::sort(made.begin() + static_cast<ptrdiff_t>(first), made.end(),
              [](const Made& a, const Made& b) {
                return a.left != b.left ? a.left < b.left : a.right < b.right;
              });
  }
  std::stable_sort(made.begin(), made.end(), [](const Made& a, const Made& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.left_chars != b.left_chars) return a.left_chars > b.left_chars;
    return a.right_chars > b.right_chars;
  });
  Json::Array merges;
  merges.reserve(made.size());
  for (const Made& m : made)
    merges.push_back(Json(Json::Array{Json(tokens[static_cast<size_t>(m.left)]),
                                      Json(tokens[static_cast<size_t>(m.right)])}));
  return Json(std::move(merges));
}

}  // namespace loongforge::data
