// A trie over bytes for vocabularies: built once from all tokens, its nodes' children side by side.
// Thread-safety: const access from several threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace loongforge::data {

class ByteTrie {
 public:
  // tokens with their values; of equal tokens the last counts. Empty ones are ignored.
  void build(std::vector<std::pair<std::string_view, int32_t>> tokens) {
    std::stable_sort(tokens.begin(), tokens.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    nodes_.assign(1, Node{});
    roots_.fill(0);
    // A node's range of tokens, split by its next byte; its children are made at once, side by
    // side.
    struct Work {
      uint32_t node;
      size_t begin, end, depth;
    };
    std::vector<Work> work = {{0, 0, tokens.size(), 0}};
    while (!work.empty()) {
      auto [node, begin, end, depth] = work.back();
      work.pop_back();
      for (; begin < end && tokens[begin].first.size() == depth; ++begin)
        if (depth > 0) nodes_[node].value = tokens[begin].second;
      nodes_[node].first = static_cast<uint32_t>(nodes_.size());
      while (begin < end) {
        const auto byte = static_cast<uint8_t>(tokens[begin].first[depth]);
        size_t last = begin;
        while (last < end && static_cast<uint8_t>(tokens[last].first[depth]) == byte) ++last;
        const auto child = static_cast<uint32_t>(nodes_.size());
        if (depth == 0) roots_[byte] = child;
        nodes_.push_back({.byte = byte});
        ++nodes_[node].count;
        work.push_back({child, begin, last, depth + 1});
        begin = last;
      }
    }
  }

  // visit(length, value) for every token that text begins with, shortest first.
  template <class Visit>
  void prefixes(std::string_view text, Visit&& visit) const {
    if (text.empty()) return;
    uint32_t at = roots_[static_cast<uint8_t>(text[0])];
    for (size_t i = 1; at != 0; ++i) {
      const Node& node = nodes_[at];
      if (node.value >= 0) visit(i, node.value);
      at = i < text.size() ? child(node, static_cast<uint8_t>(text[i])) : 0;
    }
  }

 private:
  struct Node {
    int32_t value = -1;
    uint32_t first = 0;  // its children: nodes_[first, first + count), by byte
    uint16_t count = 0;
    uint8_t byte = 0;
  };
  uint32_t child(const Node& node, uint8_t byte) const {
    const Node* begin = nodes_.data() + node.first;
    const Node* found = std::lower_bound(begin, begin + node.count, byte,
                                         [](const Node& n, uint8_t b) { return n.byte < b; });
    return found != begin + node.count && found->byte == byte
               ? static_cast<uint32_t>(found - nodes_.data())
               : 0;
  }

  std::vector<Node> nodes_;
  std::array<uint32_t, 256> roots_{};
};

}  // namespace loongforge::data
