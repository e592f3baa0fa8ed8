// CRC32C (Castagnoli, reflected, initial and final XOR 0xFFFFFFFF; RFC 3720). Check value:
// "123456789" -> 0xE3069283.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/api.h"

namespace loongforge {

// crc: the result of an earlier call to continue from, 0 to start. Uses the CPU's instruction where
// it has one.
LF_API uint32_t crc32c(std::span<const uint8_t> bytes, uint32_t crc = 0) noexcept;

LF_API bool crc32c_has_hardware() noexcept;
// The table version that crc32c falls back to; the same values.
LF_API uint32_t crc32c_portable(std::span<const uint8_t> bytes, uint32_t crc = 0) noexcept;

}  // namespace loongforge
