// Tokens and their ids, both ways. Ids may have holes. Filled once, then const.
// Thread-safety: const access from several threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loongforge::data {

class Vocabulary {
 public:
  static constexpr int64_t kMaxId = (int64_t{1} << 22) - 1;  // far above every published vocabulary

  // Makes room for count tokens.
  void reserve(size_t count, size_t bytes);
  // False when the token or the id is already there. REQUIRES: 0 <= id <= kMaxId.
  bool add(std::string_view token, int32_t id);

  // -1 when absent.
  int32_t find(std::string_view token) const;
  bool contains_id(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < by_id_.size() &&
           by_id_[static_cast<size_t>(id)].present;
  }
  // Empty when absent.
  std::string_view token(int32_t id) const;
  int32_t end_id() const { return static_cast<int32_t>(by_id_.size()); }  // largest id + 1
  size_t size() const { return count_; }

 private:
  struct Entry {
    uint64_t offset = 0;
    uint32_t length = 0;
    bool present = false;
  };
  void grow(size_t slots);

  std::string pool_;
  std::vector<Entry> by_id_;
  std::vector<int32_t> slots_;  // id or -1; open addressing, a power of two
  size_t count_ = 0;
};

}  // namespace loongforge::data
