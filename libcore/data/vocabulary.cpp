#include "data/vocabulary.h"

#include <bit>

#include "data/hash.h"

namespace loongforge::data {

void Vocabulary::reserve(size_t count, size_t bytes) {
  pool_.reserve(bytes);
  by_id_.reserve(count);
  if (slots_.size() < 2 * count) grow(std::bit_ceil(2 * count));
}

void Vocabulary::grow(size_t slots) {
  slots_.assign(slots < 16 ? 16 : slots, -1);
  size_t mask = slots_.size() - 1;
  for (size_t id = 0; id < by_id_.size(); ++id) {
    if (!by_id_[id].present) continue;
    size_t i = hash_bytes(token(static_cast<int32_t>(id))) & mask;
    while (slots_[i] >= 0) i = (i + 1) & mask;
    slots_[i] = static_cast<int32_t>(id);
  }
}

bool Vocabulary::add(std::string_view token, int32_t id) {
  if (contains_id(id) || find(token) >= 0) return false;
  if (2 * (count_ + 1) > slots_.size()) grow(2 * slots_.size());
  size_t index = static_cast<size_t>(id);
  if (index >= by_id_.size()) by_id_.resize(index + 1);
  by_id_[index] = {pool_.size(), static_cast<uint32_t>(token.size()), true};
  pool_ += token;
  size_t mask = slots_.size() - 1;
  size_t i = hash_bytes(token) & mask;
  while (slots_[i] >= 0) i = (i + 1) & mask;
  slots_[i] = id;
  ++count_;
  return true;
}

int32_t Vocabulary::find(std::string_view token) const {
  if (slots_.empty()) return -1;
  size_t mask = slots_.size() - 1;
  for (size_t i = hash_bytes(token) & mask; slots_[i] >= 0; i = (i + 1) & mask)
    if (this->token(slots_[i]) == token) return slots_[i];
  return -1;
}

std::string_view Vocabulary::token(int32_t id) const {
  if (!contains_id(id)) return {};
  const Entry& e = by_id_[static_cast<size_t>(id)];
  return std::string_view(pool_).substr(e.offset, e.length);
}

}  // namespace loongforge::data
