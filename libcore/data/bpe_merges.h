// What the BPE models share: the table of merges, the vocabulary and merges of a tokenizer.json,
// and the merging itself: the lowest-ranked pair first and the leftmost of equals, until no pair of
// the table is left. Thread-safety: tables are const after reading; scratch is one per thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "data/hash.h"
#include "data/piece_cache.h"
#include "data/tokenizer_parts.h"
#include "support/json.h"

namespace loongforge::data {

inline constexpr uint32_t kNoRank = UINT32_MAX;

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

struct BpeScratch : ModelScratch {
  PieceCache cache;
  std::vector<int32_t> ids;          // symbols of the piece
  std::vector<uint32_t> ends;        // where each ends in the piece
  std::vector<Merge> merges;         // merges[i]: of symbols i and i + 1
  std::vector<uint32_t> prev, next;  // long pieces only
  std::vector<uint64_t> heap;
};

struct MergeRule {
  int32_t left = -1, right = -1, merged = -1;
};

// model BPE's vocab and merges (by rank), every id and every name checked.
Vocabulary read_bpe_vocabulary(const support::Json& json, const std::string& where);
std::vector<MergeRule> read_bpe_merges(const support::Json& json, const Vocabulary& vocabulary,
                                       const std::string& where);
// The id of unk_token, -1 where there is none.
int32_t read_bpe_unk(const support::Json& json, const Vocabulary& vocabulary,
                     const std::string& where);
// Error(kBadData) where an option that is not supported is set.
void require_absent(const support::Json& json, const char* key, const std::string& where);

MergeTable make_merge_table(const std::vector<MergeRule>& rules);
// Merges s.ids (with s.ends and s.merges, the latter of every neighbour pair) in place.
void merge_symbols(const MergeTable& table, BpeScratch& s);

}  // namespace loongforge::data
