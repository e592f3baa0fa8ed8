// Added tokens: found in the text before anything else sees it, leftmost first and the longest of
// those. Thread-safety: const access from several threads.
#pragma once

#include <array>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer_parts.h"
#include "data/vocabulary.h"

namespace loongforge::data {

class AddedTokens {
 public:
  // A later token of the same content replaces the earlier one's flags. False when its id belongs
  // to another content.
  bool add(const AddedToken& token);
  // Call once after the last add(). normalizer (may be null) rewrites the tokens that are sought in
  // normalised text.
  void build(const Normalizer* normalizer);

  const AddedToken* find(std::string_view content) const;
  const AddedToken* find(int32_t id) const;
  // How the token reads when it is decoded: as sought, so normalised where it is sought in
  // normalised text. REQUIRES: build() was called and the token is there.
  std::string_view decoded(int32_t id) const { return decoded_[by_id_.at(id)]; }
  const std::vector<AddedToken>& tokens() const { return tokens_; }
  int32_t end_id() const { return end_id_; }

  struct Part {
    Range range;
    int32_t id = -1;  // -1: plain text
  };
  // Splits text by the tokens sought in raw text, or by those sought in normalised text.
  // find_special false: special tokens in the text stay text.
  void split(std::string_view text, bool normalized, bool find_special,
             std::vector<Part>& parts) const;
  bool any(bool normalized) const { return !tries_[normalized].nodes.empty(); }

 private:
  struct Node {
    int32_t token = -1;                               // index into tokens_
    std::vector<std::pair<uint8_t, uint32_t>> edges;  // sorted by byte
  };
  struct Trie {
    std::vector<Node> nodes;
    std::array<bool, 256> first{};
    void add(std::string_view content, int32_t token);
    // The longest token at text[at]; *end is where it ends. -1: none.
    int32_t match(std::string_view text, size_t at, size_t* end) const;
  };

  std::vector<AddedToken> tokens_;
  std::vector<std::string> decoded_;
  std::unordered_map<int32_t, size_t> by_id_;
  std::unordered_map<std::string, size_t> by_content_;
  std::array<Trie, 2> tries_;  // raw, normalised
  int32_t end_id_ = 0;
};

}  // namespace loongforge::data
