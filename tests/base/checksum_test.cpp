#include "base/checksum.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <random>
#include <string_view>
#include <vector>

using loongforge::crc32c;
using loongforge::crc32c_portable;

namespace {

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The definition, bit by bit.
uint32_t by_definition(std::span<const uint8_t> bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
  }
  return ~crc;
}

}  // namespace

TEST_CASE("checksum: check value and the vectors of RFC 3720 B.4") {
  std::vector<uint8_t> zeros(32, 0), ones(32, 0xFF), up(32), down(32);
  for (size_t i = 0; i < 32; ++i) {
    up[i] = static_cast<uint8_t>(i);
    down[i] = static_cast<uint8_t>(31 - i);
  }
  for (auto* f : {&crc32c, &crc32c_portable}) {
    CHECK(f(bytes_of("123456789"), 0) == 0xE3069283u);
    CHECK(f({}, 0) == 0);
    CHECK(f(zeros, 0) == 0x8A9136AAu);
    CHECK(f(ones, 0) == 0x62A8AB43u);
    CHECK(f(up, 0) == 0x46DD794Eu);
    CHECK(f(down, 0) == 0x113FDB5Cu);
  }
}

TEST_CASE("checksum: every length, offset and cut agrees with the definition") {
  std::mt19937 random(7);
  std::vector<uint8_t> data(20000);
  for (uint8_t& b : data) b = static_cast<uint8_t>(random());
  if (!loongforge::crc32c_has_hardware())
    std::puts("no CRC32C instruction here: both are the table version");
  for (size_t n : {1, 7, 8, 9, 63, 1023, 1024, 3071, 3072, 3073, 6144, 6151, 9216, 19990}) {
    for (size_t offset : {0, 1, 3, 7}) {
      auto part = std::span<const uint8_t>(data).subspan(offset, n);
      uint32_t expected = by_definition(part);
      CHECK(crc32c(part) == expected);
      CHECK(crc32c_portable(part) == expected);
      size_t cut = n / 3;
      CHECK(crc32c(part.subspan(cut), crc32c(part.first(cut))) == expected);
    }
  }
}
