#include "data/added_tokens.h"

#include <algorithm>

#include "support/unicode.h"

namespace loongforge::data {
namespace {

uint32_t char_before(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  int length;
  return support::decode_utf8(text.data() + begin, &length);
}

bool word_before(std::string_view text, size_t at) {
  return at > 0 && support::is_word(char_before(text, at));
}

bool word_after(std::string_view text, size_t at) {
  int length;
  return at < text.size() && support::is_word(support::decode_utf8(text.data() + at, &length));
}

size_t space_start(std::string_view text, size_t at) {
  while (at > 0 && support::is_white_space(char_before(text, at))) {
    --at;
    while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  }
  return at;
}

size_t space_end(std::string_view text, size_t at) {
  int length;
  while (at < text.size() &&
         support::is_white_space(support::decode_utf8(text.data() + at, &length)))
    at += static_cast<size_t>(length);
  return at;
}

}  // namespace

bool AddedTokens::add(const AddedToken& token) {
  if (token.content.empty()) return true;  // the reference ignores them
  if (auto known = by_content_.find(token.content); known != by_content_.end()) {
    int32_t id = tokens_[known->second].id;
    tokens_[known->second] = token;
    tokens_[known->second].id = id;
    return token.id == id;
  }
  if (by_id_.contains(token.id)) return false;
  by_id_[token.id] = by_content_[token.content] = tokens_.size();
  tokens_.push_back(token);
  end_id_ = std::max(end_id_, token.id + 1);
  return true;
}

void AddedTokens::build(const Normalizer* normalizer) {
  tries_ = {};
  decoded_.clear();
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    Segment segment;
    segment.reset(token.content, 0, false);
    if (token.normalized && normalizer != nullptr) normalizer->apply(segment);
    tries_[token.normalized].add(segment.text(), static_cast<int32_t>(i));
    decoded_.emplace_back(segment.text());
  }
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  auto it = by_content_.find(std::string(content));
  return it == by_content_.end() ? nullptr : &tokens_[it->second];
}

const AddedToken* AddedTokens::find(int32_t id) const {
  auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

void AddedTokens::Trie::add(std::string_view content, int32_t token) {
  if (content.empty()) return;
  if (nodes.empty()) nodes.emplace_back();
  first[static_cast<uint8_t>(content[0])] = true;
  uint32_t at = 0;
  for (char c : content) {
    auto byte = static_cast<uint8_t>(c);
    auto& edges = nodes[at].edges;
    auto it = std::lower_bound(edges.begin(), edges.end(), std::pair<uint8_t, uint32_t>(byte, 0));
    if (it != edges.end() && it->first == byte) {
      at = it->second;
    } else {
      auto child = static_cast<uint32_t>(nodes.size());
      edges.insert(it, {byte, child});
      nodes.emplace_back();  // invalidates edges
      at = child;
    }
  }
  nodes[at].token = token;
}

int32_t AddedTokens::Trie::match(std::string_view text, size_t start, size_t* end) const {
  int32_t found = -1;
  uint32_t at = 0;
  for (size_t i = start; i < text.size(); ++i) {
    auto byte = static_cast<uint8_t>(text[i]);
    const auto& edges = nodes[at].edges;
    auto it = std::lower_bound(edges.begin(), edges.end(), std::pair<uint8_t, uint32_t>(byte, 0));
    if (it == edges.end() || it->first != byte) break;
    at = it->second;
    if (nodes[at].token >= 0) {
      found = nodes[at].token;
      *end = i + 1;
    }
  }
  return found;
}

void AddedTokens::split(std::string_view text, bool normalized, bool find_special,
                        std::vector<Part>& parts) const {
  parts.clear();
  const Trie& trie = tries_[normalized];
  size_t done = 0;
  for (size_t at = 0; !trie.nodes.empty() && at < text.size();) {
    size_t match_end = at + 1;
    int32_t found =
        trie.first[static_cast<uint8_t>(text[at])] ? trie.match(text, at, &match_end) : -1;
    if (found < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(found)];
    size_t begin = at, end = match_end;
    at = match_end;
    if (token.special && !find_special) continue;
    if (token.single_word && (word_before(text, begin) || word_after(text, end))) continue;
    if (token.lstrip) begin = std::max(space_start(text, begin), done);
    if (token.rstrip) end = space_end(text, end);
    if (done < begin) parts.push_back({{done, begin}, -1});
    parts.push_back({{begin, end}, token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, -1});
}

}  // namespace loongforge::data
