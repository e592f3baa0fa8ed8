// CRC32C (Castagnoli, reflected, initial and final XOR 0xFFFFFFFF; RFC 3720). Check value: "123456789" -> 0xE3069283.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/api.h"

namespace loongforge {

// crc: the result of an earlier call to continue from, 0 to start.
LF_API uint32_t crc32c(std::span<const uint8_t> bytes, uint32_t crc = 0) noexcept;

}  // namespace loongforge
