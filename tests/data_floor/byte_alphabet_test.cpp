#include "data/byte_alphabet.h"

#include <set>

#include "data_floor/golden.h"

namespace loongforge::data {
namespace {

TEST_CASE("the alphabet is GPT-2's: printable bytes stay, the others follow from U+0100") {
  std::set<uint32_t> seen;
  for (int b = 0; b < 256; ++b) {
    const uint32_t c = byte_to_char(static_cast<uint8_t>(b));
    seen.insert(c);
    CHECK(char_to_byte(c) == b);
  }
  CHECK(seen.size() == 256);
  CHECK(byte_to_char('A') == 'A');
  CHECK(byte_to_char(0) == 0x100);
  CHECK(byte_to_char(' ') == 0x120);  // the published spelling of a leading space
  CHECK(byte_to_char('\n') == 0x10A);
  CHECK(byte_to_char(0xAD) == 0x143);
  CHECK(byte_to_char(0xFF) == 0xFF);
  CHECK(char_to_byte(' ') == -1);
  CHECK(char_to_byte(0x144) == -1);
  CHECK(char_to_byte(0x10FFFF) == -1);
}

TEST_CASE("text goes there and back") {
  CHECK(bytes_to_alphabet(" t") == "\xC4\xA0t");
  CHECK(alphabet_to_bytes("\xC4\xA0t") == " t");
  CHECK_FALSE(alphabet_to_bytes("a b").has_value());
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  CHECK(alphabet_to_bytes(bytes_to_alphabet(all)) == all);
}

}  // namespace
}  // namespace loongforge::data
