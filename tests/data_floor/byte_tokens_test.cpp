#include "data/byte_tokens.h"

#include <doctest/doctest.h>

namespace loongforge::data {
namespace {

TEST_CASE("every byte has its token, and other tokens stand for none") {
  for (int byte = 0; byte < 256; ++byte)
    CHECK(byte_of_token(byte_token(static_cast<uint8_t>(byte))) == byte);
  CHECK(byte_token(0x0A) == "<0x0A>");
  CHECK(byte_of_token("<0xe9>") == 0xE9);
  for (const char* token : {"", "<0x0>", "<0xGG>", "<0x0A", "<0x0A>>", "0x0A", "<0XAA>", "<0x A>"})
    CHECK(byte_of_token(token) == -1);
}

}  // namespace
}  // namespace loongforge::data
