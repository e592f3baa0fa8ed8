#include "data/byte_tokens.h"

namespace loongforge::data {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string byte_token(uint8_t byte) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  return {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'};
}

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
  const int high = hex_digit(token[3]), low = hex_digit(token[4]);
  if (low < 0) return -1;
  if (high < 0) return token[3] == '+' ? low : -1;  // the reference's parser takes a sign
  return high * 16 + low;
}

}  // namespace loongforge::data
