// The constants of the LoongIR file format (man/loongir.5).
// Thread-safety: constants and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/api.h"

namespace loongforge::ir {

inline constexpr std::string_view kModelFile = "loongir_model.json";
inline constexpr std::string_view kFormatName = "LoongIR";
inline constexpr int kVersionMajor = 1;
inline constexpr int kVersionMinor = 0;

inline constexpr uint64_t kRowAlignment = 32;       // rows are padded to it
inline constexpr uint64_t kTensorAlignment = 128;   // tensors start at multiples of it
inline constexpr int64_t kCrcRows = 128;            // rows that one CRC32C covers
inline constexpr int64_t kIdScale = 2;              // LoongIR token id = Hugging Face id x 2
inline constexpr uint64_t kMaxFileBytes = 5'000'000'000;

// A weight file begins with these bytes, then u32 major, u32 minor, u64 data start (the page), zeros up to it.
inline constexpr std::string_view kFileMagic = "LOONGIR\n";
inline constexpr uint64_t kFileHeaderBytes = 24;

constexpr uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Where file data starts: the page of the device. nullopt for a device the format does not know.
inline std::optional<uint64_t> device_page(std::string_view device) {
  if (device == "x86_64") return 4096;
  if (device == "loongarch64") return 16384;
  return std::nullopt;
}

// "weights-00001-of-00003.lir"; index from 0.
LF_API std::string weight_file_name(int64_t index, int64_t count);

}  // namespace loongforge::ir
