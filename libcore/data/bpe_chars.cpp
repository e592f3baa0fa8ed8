#include "data/bpe_chars.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/bpe_merges.h"
#include "data/byte_tokens.h"
#include "support/unicode.h"

namespace loongforge::data {
namespace {

using support::Json;

// Pairs of characters that stand on both sides of some merge's joint: a text may be cut between any
// other two. ASCII and U+2581, SentencePiece's space, are looked up in a table.
class Joints {
 public:
  static constexpr uint32_t kSpace = 0x2581;

  void reserve(size_t count) {
    slots_.assign(std::bit_ceil(std::max<size_t>(4 * count, 16)), kFree);
  }
  void add(uint32_t a, uint32_t b) {
    const size_t i = index(a), j = index(b);
    if (i < kTabled && j < kTabled) {
      table_[i * kTabled + j] = true;
      return;
    }
    const uint64_t key = uint64_t{a} << 32 | b;
    size_t at = hash_mix(key) & (slots_.size() - 1);
    while (slots_[at] != kFree && slots_[at] != key) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = key;
  }
  bool has(uint32_t a, uint32_t b) const {
    const size_t i = index(a), j = index(b);
    if (i < kTabled && j < kTabled) return table_[i * kTabled + j];
    const uint64_t key = uint64_t{a} << 32 | b;
    for (size_t at = hash_mix(key) & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at] == key) return true;
      if (slots_[at] == kFree) return false;
    }
  }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;
  static constexpr size_t kTabled = 129;
  static size_t index(uint32_t c) { return c < 128 ? c : c == kSpace ? 128 : kTabled; }

  std::array<bool, kTabled * kTabled> table_{};
  std::vector<uint64_t> slots_ = std::vector<uint64_t>(16, kFree);
};

class CharBpe : public VocabularyModel {
 public:
  CharBpe(const Json& json, const std::string& where);

  std::unique_ptr<ModelScratch> make_scratch() const override {
    return std::make_unique<BpeScratch>();
  }
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids,
              std::vector<Range>* spans) const override;

 private:
  struct PendingUnk {
    bool any = false;
    uint32_t end = 0;
  };

  void find_joints(const std::vector<MergeRule>& rules);
  int32_t char_id(std::string_view c) const {
    return c.size() == 1 ? ascii_ids_[static_cast<uint8_t>(c[0])] : vocabulary_.find(c);
  }
  bool may_cut(uint32_t a, std::string_view a_text, uint32_t b, std::string_view b_text) const {
    if (joints_.has(a, b)) return false;
    return never_unknown_ || (char_id(a_text) >= 0 && char_id(b_text) >= 0);
  }
  size_t next_cut(std::string_view piece, size_t from) const;
  void start(std::string_view part, BpeScratch& s) const;
  bool push_bytes(std::string_view c, size_t end, BpeScratch& s) const;
  void encode_part(std::string_view part, size_t offset, BpeScratch& s, std::vector<int32_t>& ids,
                   std::vector<Range>* spans) const;

  MergeTable merges_;
  Joints joints_;
  std::array<int32_t, 128> ascii_ids_{};
  std::array<int32_t, 256> byte_ids_{};  // of the byte tokens; -1 without byte_fallback
  int32_t unk_ = -1;
  bool ignore_merges_ = false, fuse_unk_ = false;
  bool never_unknown_ = false;  // every byte has a token
  bool cuts_ = true;
};

CharBpe::CharBpe(const Json& json, const std::string& where)
    : VocabularyModel(read_bpe_vocabulary(json, where)) {
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    require_absent(json, key, where);
  ignore_merges_ = json.get_bool("ignore_merges", false);
  fuse_unk_ = json.get_bool("fuse_unk", false);
  unk_ = read_bpe_unk(json, vocabulary_, where);
  for (size_t c = 0; c < ascii_ids_.size(); ++c) {
    const char text = static_cast<char>(c);
    ascii_ids_[c] = vocabulary_.find(std::string_view(&text, 1));
  }
  byte_ids_.fill(-1);
  if (json.get_bool("byte_fallback", false)) {
    byte_ids_ = byte_token_ids([&](std::string_view token) { return vocabulary_.find(token); });
    never_unknown_ = std::find(byte_ids_.begin(), byte_ids_.end(), -1) == byte_ids_.end();
  }
  const std::vector<MergeRule> rules = read_bpe_merges(json, vocabulary_, where);
  merges_ = make_merge_table(rules);
  find_joints(rules);
}

void CharBpe::find_joints(const std::vector<MergeRule>& rules) {
  joints_.reserve(rules.size());
  for (const MergeRule& rule : rules) {
    const std::string_view left = vocabulary_.token(rule.left);
    const std::string_view right = vocabulary_.token(rule.right);
    // Tokens that stand for other text than their own: where the text can be cut says nothing.
    const auto stands_in = [&](int32_t id, std::string_view token) {
      return id == unk_ || token.empty() || byte_of_token(token) >= 0;
    };
    if (stands_in(rule.left, left) || stands_in(rule.right, right)) {
      cuts_ = false;
      return;
    }
    size_t last = left.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(left[last]) & 0xC0) == 0x80) --last;
    int length;
    const uint32_t a = support::decode_utf8(left.data() + last, &length);
    joints_.add(a, support::decode_utf8(right.data(), &length));
  }
}

// The end of the part that begins at `from`.
size_t CharBpe::next_cut(std::string_view piece, size_t from) const {
  if (!cuts_) return piece.size();
  int length;
  uint32_t a = support::decode_utf8(piece.data() + from, &length);
  size_t begin = from;
  for (size_t at = from + static_cast<size_t>(length); at < piece.size();) {
    const uint32_t b = support::decode_utf8(piece.data() + at, &length);
    const size_t end = at + static_cast<size_t>(length);
    if (may_cut(a, piece.substr(begin, at - begin), b, piece.substr(at, end - at))) return at;
    a = b;
    begin = at;
    at = end;
  }
  return piece.size();
}

// The tokens of a character's bytes; false when one is missing.
bool CharBpe::push_bytes(std::string_view c, size_t end, BpeScratch& s) const {
  for (char byte : c)
    if (byte_ids_[static_cast<uint8_t>(byte)] < 0) return false;
  for (size_t i = 0; i < c.size(); ++i) {
    s.ids.push_back(byte_ids_[static_cast<uint8_t>(c[i])]);
    s.ends.push_back(static_cast<uint32_t>(end - c.size() + i + 1));
  }
  return true;
}

void CharBpe::start(std::string_view part, BpeScratch& s) const {
  s.ids.clear();
  s.ends.clear();
  s.merges.clear();
  PendingUnk unk;
  const auto flush = [&] {
    if (!unk.any) return;
    s.ids.push_back(unk_);
    s.ends.push_back(unk.end);
    unk.any = false;
  };
  for (size_t at = 0; at < part.size();) {
    int length;
    support::decode_utf8(part.data() + at, &length);
    const std::string_view c = part.substr(at, static_cast<size_t>(length));
    at += c.size();
    if (const int32_t id = char_id(c); id >= 0) {
      flush();
      s.ids.push_back(id);
      s.ends.push_back(static_cast<uint32_t>(at));
      continue;
    }
    // As in the reference, bytes overtake an unknown token that waits for more of its kind.
    if (push_bytes(c, at, s)) continue;
    if (unk_ < 0) continue;  // the reference drops what it cannot spell
    if (!fuse_unk_) flush();
    unk = {true, static_cast<uint32_t>(at)};
  }
  flush();
  for (size_t i = 0; i + 1 < s.ids.size(); ++i)
    s.merges.push_back(merges_.find(s.ids[i], s.ids[i + 1]));
}

void CharBpe::encode_part(std::string_view part, size_t offset, BpeScratch& s,
                          std::vector<int32_t>& ids, std::vector<Range>* spans) const {
  const bool cached = spans == nullptr && part.size() <= PieceCache::kMaxBytes;
  uint64_t hash = 0;
  if (cached) {
    hash = hash_bytes(part);
    if (s.cache.find(part, hash, ids)) return;
  }
  start(part, s);
  merge_symbols(merges_, s);
  ids.insert(ids.end(), s.ids.begin(), s.ids.end());
  if (spans != nullptr) {
    size_t begin = 0;
    for (uint32_t end : s.ends) {
      spans->push_back({offset + std::min<size_t>(begin, end), offset + end});
      begin = end;
    }
  }
  if (cached) s.cache.put(part, hash, s.ids.data(), s.ids.size());
}

void CharBpe::encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids,
                     std::vector<Range>* spans) const {
  auto& s = static_cast<BpeScratch&>(scratch);
  if (piece.empty()) return;
  if (ignore_merges_) {
    if (const int32_t id = vocabulary_.find(piece); id >= 0) {
      ids.push_back(id);
      if (spans != nullptr) spans->push_back({0, piece.size()});
      return;
    }
  }
  for (size_t at = 0; at < piece.size();) {
    const size_t end = next_cut(piece, at);
    encode_part(piece.substr(at, end - at), at, s, ids, spans);
    at = end;
  }
}

}  // namespace

std::unique_ptr<TokenModel> make_char_bpe(const Json& json, const std::string& where) {
  return std::make_unique<CharBpe>(json, where);
}

}  // namespace loongforge::data
