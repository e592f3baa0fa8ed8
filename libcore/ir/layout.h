// The constants of the LoongIR file format (man/loongir.5).
// Thread-safety: constants and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/api.h"
#include "ir/model.h"

namespace loongforge::ir {

inline constexpr std::string_view kModelFile = "loongir_model.json";
inline constexpr std::string_view kFormatName = "LoongIR";
inline constexpr int kVersionMajor = 1;
inline constexpr int kVersionMinor = 1;

inline constexpr uint64_t kRowAlignment = 32;      // rows are padded to it
inline constexpr uint64_t kTensorAlignment = 128;  // tensors start at multiples of it
inline constexpr int64_t kCrcRows = 128;           // rows that one CRC32C covers
inline constexpr int64_t kNf4Block = 64;           // elements along a row that share an absmax
inline constexpr int64_t kIdScale = 2;             // LoongIR token id = Hugging Face id x 2
inline constexpr uint64_t kMaxFileBytes = 5'000'000'000;

// A weight file begins with these bytes, then u32 major, u32 minor, u64 data start (the page),
// zeros up to it.
inline constexpr std::string_view kFileMagic = "LOONGIR\n";
inline constexpr uint64_t kFileHeaderBytes = 24;

constexpr uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Where file data starts: the page of the device. nullopt for a device the format does not know.
inline std::optional<uint64_t> device_page(std::string_view device) {
  if (device == "x86_64") return 4096;
  if (device == "loongarch64") return 16384;
  return std::nullopt;
}

// How tensors fill weight files, in order: a tensor and its companions stand in one file, a file
// ends before it would grow beyond the limit, and a tensor larger than that has a file of its own.
class FilePlan {
 public:
  explicit FilePlan(uint64_t page, uint64_t max_file_bytes = kMaxFileBytes)
      : page_(page), max_file_bytes_(max_file_bytes) {}
  // bytes: with companions, a multiple of kTensorAlignment. True when the tensor begins a new file.
  bool place(uint64_t bytes) {
    const bool begins = files_ == 0 || (position_ > page_ && position_ + bytes > max_file_bytes_);
    if (begins) {
      ++files_;
      position_ = page_;
      total_ += page_;
    }
    position_ += bytes;
    total_ += bytes;
    return begins;
  }
  int64_t files() const { return files_; }
  uint64_t total_bytes() const { return total_; }  // of all files, headers included

 private:
  uint64_t page_, max_file_bytes_, position_ = 0, total_ = 0;
  int64_t files_ = 0;
};

// Bytes of the tensor with its companions and their alignment. Only dtype, shape, block_rows,
// block_cols and scale_dtype are read; of what it carries along, dtype and shape.
LF_API uint64_t placed_bytes(const TensorEntry& entry, std::span<const TensorEntry> carried = {});

// "weights-00001-of-00003.lir"; index from 0.
LF_API std::string weight_file_name(int64_t index, int64_t count);

}  // namespace loongforge::ir
