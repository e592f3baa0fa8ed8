#include "data/chars_map.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

// A unit of the double array: the label that leads to it, where its children are, whether one of
// them is a value.
uint32_t label_of(uint32_t unit) { return unit & (uint32_t{1} << 31 | 0xFF); }
size_t offset_of(uint32_t unit) { return size_t{unit >> 10} << ((unit & (1u << 9)) >> 6); }
bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & ~(uint32_t{1} << 31); }

[[noreturn]] void fail(const std::string& where, const char* why) {
  throw_bad_data(where, std::string("precompiled_charsmap is broken: ") + why);
}

}  // namespace

CharsMap CharsMap::parse(std::string_view bytes, const std::string& where) {
  uint32_t trie_bytes;
  if (bytes.size() < sizeof trie_bytes) fail(where, "it is too short");
  std::memcpy(&trie_bytes, bytes.data(), sizeof trie_bytes);
  bytes.remove_prefix(sizeof trie_bytes);
  if (trie_bytes > bytes.size() || trie_bytes % sizeof(uint32_t) != 0 || trie_bytes == 0)
    fail(where, "its trie does not fit");
  CharsMap map;
  map.units_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(map.units_.data(), bytes.data(), trie_bytes);
  map.replacements_ = bytes.substr(trie_bytes);
  map.check(where);
  return map;
}

// Walks every path: each unit that a look-up could read exists, each value is a whole text.
void CharsMap::check(const std::string& where) const {
  if (support::find_invalid_utf8(replacements_) != support::kUtf8Valid)
    fail(where, "a replacement is not UTF-8");
  std::vector<bool> seen(units_.size());
  std::vector<size_t> open = {offset_of(units_[0])};  // where the children of a node begin
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    if ((node | 0xFF) >= units_.size()) fail(where, "its trie leads outside itself");
    if (seen[node]) continue;
    seen[node] = true;
    for (uint32_t c = 1; c < 256; ++c) {
      const uint32_t unit = units_[node ^ c];
      if (label_of(unit) != c) continue;
      const size_t child = (node ^ c) ^ offset_of(unit);
      open.push_back(child);
      if (!has_value(unit)) continue;
      if (child >= units_.size()) fail(where, "its trie leads outside itself");
      const size_t at = value_of(units_[child]);
      if (at >= replacements_.size() || replacements_.find('\0', at) == std::string::npos)
        fail(where, "an entry has no replacement");
      if ((static_cast<unsigned char>(replacements_[at]) & 0xC0) == 0x80)
        fail(where, "a replacement begins within a character");
    }
  }
}

std::optional<std::string_view> CharsMap::find(std::string_view text) const {
  size_t node = offset_of(units_[0]);
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) break;
    node ^= byte;
    const uint32_t unit = units_[node];
    if (label_of(unit) != byte) break;
    node ^= offset_of(unit);
    if (has_value(unit)) return std::string_view(replacements_.c_str() + value_of(units_[node]));
  }
  return std::nullopt;
}

}  // namespace loongforge::data
