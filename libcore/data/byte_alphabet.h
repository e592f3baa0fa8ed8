// The byte-level alphabet of GPT-2: every byte has a printable character of its own, so that
// vocabularies are text. Printable Latin-1 bytes stand for themselves, the others for U+0100,
// U+0101, ... in order. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace loongforge::data {

uint32_t byte_to_char(uint8_t byte);
// The byte that a character stands for, or -1.
int char_to_byte(uint32_t code_point);
// "\u0120t" for " t".
std::string bytes_to_alphabet(std::string_view bytes);
// Nothing when a character lies outside the alphabet. REQUIRES: valid UTF-8.
std::optional<std::string> alphabet_to_bytes(std::string_view text);

}  // namespace loongforge::data
