// Byte tokens: "<0x0A>" stands for the byte 0x0A where a vocabulary lacks a character.
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace loongforge::data {

std::string byte_token(uint8_t byte);
// The byte that a token stands for, or -1.
int byte_of_token(std::string_view token);

// Every byte's token id by find(token), -1 where there is none.
template <class Find>
std::array<int32_t, 256> byte_token_ids(Find&& find) {
  std::array<int32_t, 256> ids{};
  for (int byte = 0; byte < 256; ++byte)
    ids[static_cast<size_t>(byte)] = find(byte_token(static_cast<uint8_t>(byte)));
  return ids;
}

}  // namespace loongforge::data
