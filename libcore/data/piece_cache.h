// Pieces of text that a token model met before, and their ids: direct-mapped, one cache line an
// entry, so its size is bounded and nothing is allocated. Thread-safety: one per thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace loongforge::data {

class PieceCache {
 public:
  static constexpr size_t kMaxBytes = 30, kMaxIds = 6;

  PieceCache() : slots_(size_t{1} << 15) {}

  // hash: of the piece, by hash_bytes. Appends the ids. REQUIRES: piece.size() <= kMaxBytes.
  bool find(std::string_view piece, uint64_t hash, std::vector<int32_t>& ids) const {
    const Slot& slot = slots_[hash & (slots_.size() - 1)];
    if (slot.hash != hash || slot.bytes != piece.size() ||
        std::memcmp(slot.key, piece.data(), piece.size()) != 0)
      return false;
    ids.insert(ids.end(), slot.ids, slot.ids + slot.count);
    return true;
  }

  // More than kMaxIds ids are not kept.
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

}  // namespace loongforge::data
