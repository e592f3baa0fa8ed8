// SentencePiece's table of text replacements ("precompiled_charsmap"): a double-array trie from
// what is replaced to what replaces it. The whole table is checked when it is read, so that no
// look-up can leave it. Thread-safety: const access from several threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loongforge::data {

class CharsMap {
 public:
  // Error(kBadData) where a part of the table leads outside it; where names the file.
  static CharsMap parse(std::string_view bytes, const std::string& where);

  // What the shortest entry that text begins with is replaced by. Nothing when there is none.
  std::optional<std::string_view> find(std::string_view text) const;

 private:
  void check(const std::string& where) const;

  std::vector<uint32_t> units_;
  std::string replacements_;  // each ends with a zero byte
};

}  // namespace loongforge::data
