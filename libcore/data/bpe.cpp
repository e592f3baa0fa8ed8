#include "data/bpe.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "data/byte_alphabet.h"
#include "data/hash.h"
#include "data/vocabulary.h"

namespace loongforge::data {
namespace {

using support::Json;

constexpr uint32_t kNoRank = UINT32_MAX;

struct Merge {
  uint32_t rank = kNoRank;
  int32_t id = -1;
};

// (left id, right id) -> rank and merged id; open addressing.
class MergeTable {
 public:
  void reserve(size_t count) {
    slots_.assign(std::bit_ceil(std::max<size_t>(2 * count, 16)), Slot{});
  }

  // A later entry for the same pair replaces the earlier one, as in the reference.
  void set(int32_t left, int32_t right, Merge merge) {
    uint64_t key = pair_key(left, right);
    size_t mask = slots_.size() - 1;
    size_t i = hash_mix(key) & mask;
    while (slots_[i].key != kFree && slots_[i].key != key) i = (i + 1) & mask;
    slots_[i] = {key, merge};
  }

  Merge find(int32_t left, int32_t right) const {
    uint64_t key = pair_key(left, right);
    size_t mask = slots_.size() - 1;
    for (size_t i = hash_mix(key) & mask;; i = (i + 1) & mask) {
      if (slots_[i].key == key) return slots_[i].merge;
      if (slots_[i].key == kFree) return {};
    }
  }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;
  static uint64_t pair_key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  struct Slot {
    uint64_t key = kFree;
    Merge merge;
  };
  std::vector<Slot> slots_;
};

// Pieces and their ids: direct-mapped, one cache line an entry, so its size is bounded and nothing
// is allocated.
class PieceCache {
 public:
  static constexpr size_t kMaxBytes = 30, kMaxIds = 6;

  PieceCache() : slots_(size_t{1} << 15) {}

  bool find(std::string_view piece, uint64_t hash, std::vector<int32_t>& ids) const {
    const Slot& slot = slots_[hash & (slots_.size() - 1)];
    if (slot.hash != hash || slot.bytes != piece.size() ||
        std::memcmp(slot.key, piece.data(), piece.size()) != 0)
      return false;
    ids.insert(ids.end(), slot.ids, slot.ids + slot.count);
    return true;
  }

  void put(std::string_view piece, uint64_t hash, const int32_t* ids, size_t count) {
    if (count > kMaxIds) return;
    Slot& slot = slots_[hash & (slots_.size() - 1)];
    slot.hash = hash;
    slot.bytes = static_cast<uint8_t>(piece.size());
    slot.count = static_cast<uint8_t>(count);
    std::memcpy(slot.key, piece.data(), piece.size());
    std::copy(ids, ids + count, slot.ids);
  }

 private:
  struct alignas(64) Slot {
    uint64_t hash = 0;
    uint8_t bytes = 0, count = 0;
    char key[kMaxBytes] = {};
    int32_t ids[kMaxIds] = {};
  };
  static_assert(sizeof(Slot) == 64);
  std::vector<Slot> slots_;
};

struct BpeScratch : ModelScratch {
  PieceCache cache;
  std::vector<int32_t> ids;          // symbols of the piece
  std::vector<uint32_t> ends;        // where each ends in the piece
  std::vector<Merge> merges;         // merges[i]: of symbols i and i + 1
  std::vector<uint32_t> prev, next;  // long pieces only
  std::vector<uint64_t> heap;
};

// Above this many symbols the shrinking arrays lose to a heap.
constexpr size_t kHeapFrom = 160;

class ByteBpe : public TokenModel {
 public:
  ByteBpe(const Json& json, const std::string& where);

  std::unique_ptr<ModelScratch> make_scratch() const override {
    return std::make_unique<BpeScratch>();
  }
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids,
              std::vector<Range>* spans) const override;
  int32_t token_to_id(std::string_view token) const override { return vocabulary_.find(token); }
  std::string_view id_to_token(int32_t id) const override { return vocabulary_.token(id); }
  int32_t end_id() const override { return vocabulary_.end_id(); }

 private:
  void read_vocabulary(const Json& json, const std::string& where);
  void read_merges(const Json& json, const std::string& where);
  void start(std::string_view piece, BpeScratch& s) const;
  void merge_short(BpeScratch& s) const;
  void merge_long(BpeScratch& s) const;
  // The first merges: symbols are single bytes, so a table by byte pairs serves.
  Merge byte_pair(uint8_t a, uint8_t b) const { return byte_pairs_[size_t{a} << 8 | b]; }

  Vocabulary vocabulary_;  // as the file spells tokens
  Vocabulary words_;       // as bytes; filled when ignore_merges wants whole pieces
  int32_t byte_ids_[256];  // -1: the vocabulary lacks the byte
  MergeTable merges_;
  std::vector<Merge> byte_pairs_;
  int32_t unk_ = -1;
  bool ignore_merges_ = false, fuse_unk_ = false;
};

void require_absent(const Json& json, const char* key, const std::string& where) {
  const Json* value = json.find(key);
  bool absent =
      value == nullptr || value->is_null() || (value->is_string() && value->as_string().empty()) ||
      (value->is_bool() && !value->as_bool()) || (value->is_number() && value->as_double() == 0);
  if (!absent)
    throw_bad_data(where, std::string("model BPE: ") + key + " is not supported with ByteLevel");
}

ByteBpe::ByteBpe(const Json& json, const std::string& where) {
  for (const char* key :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"})
    require_absent(json, key, where);
  ignore_merges_ = json.get_bool("ignore_merges", false);
  fuse_unk_ = json.get_bool("fuse_unk", false);
  read_vocabulary(json, where);
  if (std::string unk = json.get_string("unk_token", ""); !unk.empty()) {
    unk_ = vocabulary_.find(unk);
    if (unk_ < 0)
      throw_bad_data(where, "model BPE: unk_token '" + unk + "' is not in the vocabulary");
  }
  read_merges(json, where);
}

void ByteBpe::read_vocabulary(const Json& json, const std::string& where) {
  const Json::Object& tokens = json.at("vocab", "model BPE").as_object("model BPE's vocab");
  size_t bytes = 0;
  for (const auto& [token, id] : tokens) bytes += token.size();
  vocabulary_.reserve(tokens.size(), bytes);
  if (ignore_merges_) words_.reserve(tokens.size(), bytes);
  std::fill(std::begin(byte_ids_), std::end(byte_ids_), -1);
  for (const auto& [token, value] : tokens) {
    int64_t id = value.as_int("vocab['" + token + "']");
    if (id < 0 || id > Vocabulary::kMaxId)
      throw_bad_data(where, "model BPE: id " + std::to_string(id) + " of token '" + token +
                                "' is out of range");
    if (!vocabulary_.add(token, static_cast<int32_t>(id)))
      throw_bad_data(where, "model BPE: id " + std::to_string(id) + " of token '" + token +
                                "' is taken already");
    auto word = alphabet_to_bytes(token);
    if (!word || word->empty()) continue;
    if (word->size() == 1) byte_ids_[static_cast<uint8_t>((*word)[0])] = static_cast<int32_t>(id);
    if (ignore_merges_) words_.add(*word, static_cast<int32_t>(id));
  }
}

void ByteBpe::read_merges(const Json& json, const std::string& where) {
  const Json::Array& list = json.at("merges", "model BPE").as_array("model BPE's merges");
  merges_.reserve(list.size());
  std::string merged;
  for (size_t rank = 0; rank < list.size(); ++rank) {
    std::string_view left, right;
    if (list[rank].is_string()) {
      std::string_view text = list[rank].as_string();
      size_t space = text.find(' ');
      if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
        throw_bad_data(where, "model BPE: merges[" + std::to_string(rank) + "] '" +
                                  std::string(text) + "' is not two tokens with one space between");
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else {
      const Json::Array& pair = list[rank].as_array("merges[" + std::to_string(rank) + "]");
      if (pair.size() != 2)
        throw_bad_data(where, "model BPE: merges[" + std::to_string(rank) + "] is no pair");
      left = pair[0].as_string("merge");
      right = pair[1].as_string("merge");
    }
    merged.assign(left);
    merged += right;
    int32_t ids[3] = {vocabulary_.find(left), vocabulary_.find(right), vocabulary_.find(merged)};
    for (int i = 0; i < 3; ++i)
      if (ids[i] < 0)
        throw_bad_data(where, "model BPE: merges[" + std::to_string(rank) + "] needs token '" +
                                  (i == 0   ? std::string(left)
                                   : i == 1 ? std::string(right)
                                            : merged) +
                                  "', which the vocabulary lacks");
    merges_.set(ids[0], ids[1], {static_cast<uint32_t>(rank), ids[2]});
  }
  byte_pairs_.assign(size_t{1} << 16, Merge{});
  for (size_t a = 0; a < 256; ++a)
    for (size_t b = 0; b < 256; ++b)
      if (byte_ids_[a] >= 0 && byte_ids_[b] >= 0)
        byte_pairs_[a << 8 | b] = merges_.find(byte_ids_[a], byte_ids_[b]);
}

void ByteBpe::start(std::string_view piece, BpeScratch& s) const {
  s.ids.clear();
  s.ends.clear();
  s.merges.clear();
  bool all_known = true;
  for (size_t i = 0; i < piece.size(); ++i) {
    int32_t id = byte_ids_[static_cast<uint8_t>(piece[i])];
    if (id < 0) {
      all_known = false;
      if (unk_ < 0) continue;  // the reference drops what it cannot spell
      bool fuse = fuse_unk_ && !s.ids.empty() && s.ids.back() == unk_;
      if (fuse) {
        s.ends.back() = static_cast<uint32_t>(i + 1);
        continue;
      }
      id = unk_;
    }
    s.ids.push_back(id);
    s.ends.push_back(static_cast<uint32_t>(i + 1));
  }
  for (size_t i = 0; i + 1 < s.ids.size(); ++i)
    s.merges.push_back(
        all_known ? byte_pair(static_cast<uint8_t>(piece[i]), static_cast<uint8_t>(piece[i + 1]))
                  : merges_.find(s.ids[i], s.ids[i + 1]));
}

void ByteBpe::merge_short(BpeScratch& s) const {
  int32_t* ids = s.ids.data();
  uint32_t* ends = s.ends.data();
  Merge* merges = s.merges.data();
  size_t n = s.ids.size();
  while (n > 1) {
    size_t best = 0;
    uint32_t rank = merges[0].rank;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (merges[i].rank < rank) {
        rank = merges[i].rank;
        best = i;
      }
    }
    if (rank == kNoRank) break;
    ids[best] = merges[best].id;
    ends[best] = ends[best + 1];
    size_t tail = n - best - 2;
    std::memmove(ids + best + 1, ids + best + 2, tail * sizeof *ids);
    std::memmove(ends + best + 1, ends + best + 2, tail * sizeof *ends);
    if (tail > 0) std::memmove(merges + best, merges + best + 1, tail * sizeof *merges);
    --n;
    if (best > 0) merges[best - 1] = merges_.find(ids[best - 1], ids[best]);
    if (best + 1 < n) merges[best] = merges_.find(ids[best], ids[best + 1]);
  }
  s.ids.resize(n);
  s.ends.resize(n);
}

void ByteBpe::merge_long(BpeScratch& s) const {
  constexpr uint32_t kEnd = UINT32_MAX;
  auto count = static_cast<uint32_t>(s.ids.size());
  s.prev.resize(count);
  s.next.resize(count);
  s.heap.clear();
  for (uint32_t i = 0; i < count; ++i) {
    s.prev[i] = i == 0 ? kEnd : i - 1;
    s.next[i] = i + 1 == count ? kEnd : i + 1;
    if (i + 1 < count && s.merges[i].rank != kNoRank)
      s.heap.push_back(uint64_t{s.merges[i].rank} << 32 | i);
  }
  s.merges.resize(count);
  auto later = std::greater<uint64_t>();
  std::make_heap(s.heap.begin(), s.heap.end(), later);
  auto refresh = [&](uint32_t i) {
    s.merges[i] = s.next[i] == kEnd ? Merge{} : merges_.find(s.ids[i], s.ids[s.next[i]]);
    if (s.merges[i].rank == kNoRank) return;
    s.heap.push_back(uint64_t{s.merges[i].rank} << 32 | i);
    std::push_heap(s.heap.begin(), s.heap.end(), later);
  };
  while (!s.heap.empty()) {
    std::pop_heap(s.heap.begin(), s.heap.end(), later);
    uint64_t top = s.heap.back();
    s.heap.pop_back();
    auto i = static_cast<uint32_t>(top);
    // Symbols merged away have id -1; a pair that changed since has another rank.
    if (s.ids[i] < 0 || s.merges[i].rank != static_cast<uint32_t>(top >> 32)) continue;
    uint32_t j = s.next[i];
    s.ids[i] = s.merges[i].id;
    s.ends[i] = s.ends[j];
    s.ids[j] = -1;
    s.next[i] = s.next[j];
    if (s.next[j] != kEnd) s.prev[s.next[j]] = i;
    refresh(i);
    if (s.prev[i] != kEnd) refresh(s.prev[i]);
  }
  size_t n = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (s.ids[i] < 0) continue;
    s.ids[n] = s.ids[i];
    s.ends[n++] = s.ends[i];
  }
  s.ids.resize(n);
  s.ends.resize(n);
}

void ByteBpe::encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids,
                     std::vector<Range>* spans) const {
  if (piece.empty()) return;
  auto& s = static_cast<BpeScratch&>(scratch);
  bool cached = spans == nullptr && piece.size() <= PieceCache::kMaxBytes;
  uint64_t hash = 0;
  if (cached) {
    hash = hash_bytes(piece);
    if (s.cache.find(piece, hash, ids)) return;
  }
  if (ignore_merges_) {
    if (int32_t id = words_.find(piece); id >= 0) {
      ids.push_back(id);
      if (spans != nullptr) spans->push_back({0, piece.size()});
      if (cached) s.cache.put(piece, hash, &id, 1);
      return;
    }
  }
  start(piece, s);
  s.ids.size() < kHeapFrom ? merge_short(s) : merge_long(s);
  ids.insert(ids.end(), s.ids.begin(), s.ids.end());
  if (spans != nullptr)
    for (size_t i = 0; i < s.ids.size(); ++i)
      spans->push_back({i == 0 ? 0 : s.ends[i - 1], s.ends[i]});
  if (cached) s.cache.put(piece, hash, s.ids.data(), s.ids.size());
}

}  // namespace

std::unique_ptr<TokenModel> make_byte_bpe(const Json& json, const std::string& where) {
  return std::make_unique<ByteBpe>(json, where);
}

}  // namespace loongforge::data
