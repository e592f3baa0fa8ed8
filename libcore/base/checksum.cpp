#include "base/checksum.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#define LF_CRC32C_TARGET __attribute__((target("sse4.2")))
#elif defined(__loongarch__) && __loongarch_grlen == 64
#include <sys/auxv.h>
#define LF_CRC32C_TARGET
#endif

namespace loongforge {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 reflected

using Table = std::array<std::array<uint32_t, 256>, 8>;

// table[k][b]: the register after byte b and k zero bytes.
constexpr Table make_table() {
  Table table{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[0][b] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t b = 0; b < 256; ++b) {
      table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xFF];
    }
  }
  return table;
}

constexpr Table kTable = make_table();

uint64_t load_le64(const uint8_t* p) noexcept {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;  // both targets are little-endian
}

// Eight bytes a step through eight tables.
uint32_t update_portable(uint32_t crc, const uint8_t* p, size_t n) noexcept {
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t v = load_le64(p) ^ crc;
    crc = kTable[7][v & 0xFF] ^ kTable[6][(v >> 8) & 0xFF] ^ kTable[5][(v >> 16) & 0xFF] ^
          kTable[4][(v >> 24) & 0xFF] ^ kTable[3][(v >> 32) & 0xFF] ^ kTable[2][(v >> 40) & 0xFF] ^
          kTable[1][(v >> 48) & 0xFF] ^ kTable[0][v >> 56];
  }
  for (; n > 0; ++p, --n) crc = (crc >> 8) ^ kTable[0][(crc ^ *p) & 0xFF];
  return crc;
}

#ifdef LF_CRC32C_TARGET

// The instruction has a latency of three cycles and starts one a cycle, so three stripes are summed
// side by side; kShift moves a register past kStripe zero bytes to join them.
constexpr size_t kStripe = 1024;
using Shift = std::array<std::array<uint32_t, 256>, 4>;

constexpr Shift make_shift() {
  std::array<uint32_t, 32>
      column{};  // column[i]: the register with bit i set after kStripe zero bytes
  for (size_t i = 0; i < 32; ++i) {
    uint32_t crc = uint32_t{1} << i;
    for (size_t n = 0; n < kStripe; ++n) crc = (crc >> 8) ^ kTable[0][crc & 0xFF];
    column[i] = crc;
  }
  Shift shift{};
  for (size_t k = 0; k < 4; ++k) {
    for (size_t b = 0; b < 256; ++b) {
      for (size_t bit = 0; bit < 8; ++bit) {
        if (((b >> bit) & 1) != 0) shift[k][b] ^= column[k * 8 + bit];
      }
    }
  }
  return shift;
}

constexpr Shift kShift = make_shift();

uint32_t past_stripe(uint32_t crc) noexcept {
  return kShift[0][crc & 0xFF] ^ kShift[1][(crc >> 8) & 0xFF] ^ kShift[2][(crc >> 16) & 0xFF] ^
         kShift[3][crc >> 24];
}

#if defined(__x86_64__)
bool hardware_available() noexcept {
  unsigned a, b, c = 0, d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0;
}
LF_CRC32C_TARGET inline uint32_t step8(uint32_t crc, uint64_t v) noexcept {
  return static_cast<uint32_t>(_mm_crc32_u64(crc, v));
}
LF_CRC32C_TARGET inline uint32_t step1(uint32_t crc, uint8_t v) noexcept {
  return _mm_crc32_u8(crc, v);
}
#else
bool hardware_available() noexcept {
  constexpr unsigned long kHwcapCrc32 = 1UL << 6;
  return (getauxval(AT_HWCAP) & kHwcapCrc32) != 0;
}
inline uint32_t step8(uint32_t crc, uint64_t v) noexcept {
  uint32_t out;
  __asm__("crcc.w.d.w %0, %1, %2" : "=r"(out) : "r"(v), "r"(crc));
  return out;
}
inline uint32_t step1(uint32_t crc, uint8_t v) noexcept {
  uint32_t out;
  __asm__("crcc.w.b.w %0, %1, %2" : "=r"(out) : "r"(v), "r"(crc));
  return out;
}
#endif

LF_CRC32C_TARGET uint32_t update_hardware(uint32_t crc, const uint8_t* p, size_t n) noexcept {
  for (; n >= 3 * kStripe; p += 3 * kStripe, n -= 3 * kStripe) {
    uint32_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < kStripe; i += 8) {
      a = step8(a, load_le64(p + i));
      b = step8(b, load_le64(p + kStripe + i));
      c = step8(c, load_le64(p + 2 * kStripe + i));
    }
    crc = past_stripe(past_stripe(a) ^ b) ^ c;
  }
  for (; n >= 8; p += 8, n -= 8) crc = step8(crc, load_le64(p));
  for (; n > 0; ++p, --n) crc = step1(crc, *p);
  return crc;
}

#else
bool hardware_available() noexcept { return false; }
uint32_t update_hardware(uint32_t crc, const uint8_t* p, size_t n) noexcept {
  return update_portable(crc, p, n);
}
#endif

}  // namespace

bool crc32c_has_hardware() noexcept {
  static const bool available = hardware_available();
  return available;
}

uint32_t crc32c_portable(std::span<const uint8_t> bytes, uint32_t crc) noexcept {
  return ~update_portable(~crc, bytes.data(), bytes.size());
}

uint32_t crc32c(std::span<const uint8_t> bytes, uint32_t crc) noexcept {
  if (!crc32c_has_hardware()) return crc32c_portable(bytes, crc);
  return ~update_hardware(~crc, bytes.data(), bytes.size());
}

}  // namespace loongforge
