#include "data/byte_alphabet.h"

#include <array>

#include "support/unicode.h"

namespace loongforge::data {
namespace {

struct Tables {
  std::array<uint16_t, 256> to_char{};
  std::array<int16_t, 0x144> to_byte{};
};

constexpr bool stands_for_itself(int b) {
  return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xFF && b != 0xAD);
}

constexpr Tables make_tables() {
  Tables t;
  t.to_byte.fill(-1);
  int next = 0x100;
  for (int b = 0; b < 256; ++b) {
    int c = stands_for_itself(b) ? b : next++;
    t.to_char[static_cast<size_t>(b)] = static_cast<uint16_t>(c);
    t.to_byte[static_cast<size_t>(c)] = static_cast<int16_t>(b);
  }
  return t;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t byte_to_char(uint8_t byte) { return kTables.to_char[byte]; }

int char_to_byte(uint32_t c) { return c < kTables.to_byte.size() ? kTables.to_byte[c] : -1; }

std::string bytes_to_alphabet(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (char b : bytes) support::append_utf8(out, byte_to_char(static_cast<uint8_t>(b)));
  return out;
}

std::optional<std::string> alphabet_to_bytes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    int length;
    int byte = char_to_byte(support::decode_utf8(text.data() + i, &length));
    if (byte < 0) return std::nullopt;
    out += static_cast<char>(byte);
    i += static_cast<size_t>(length);
  }
  return out;
}

}  // namespace loongforge::data
