// Reads a LoongIR folder. Opening validates everything of the table (offsets, sizes, overlaps,
// dtypes, companions, aliases, versions) before any of it is trusted; rows are verified by their
// CRC32C as they are read. Thread-safety: const members may be called from several threads.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"
#include "ir/model.h"

namespace loongforge::ir {

class LF_API Reader {
 public:
  explicit Reader(const std::filesystem::path& folder);  // kNoInput / kBadData
  Reader(Reader&&) noexcept;
  ~Reader();

  const std::filesystem::path& folder() const;
  const Model& model() const;
  // Rows [row0, row1) with their stride, verified; REQUIRES row0 % 128 == 0 and (row1 % 128 == 0 or
  // row1 == rows()). out.size() == (row1 - row0) * row_stride(). Aliases are followed. The file's
  // pages are dropped from the cache.
  void read_rows(const TensorEntry& tensor, int64_t row0, int64_t row1,
                 std::span<uint8_t> out) const;
  // A whole small tensor as dense fp32 values (norm weights, scales); converts F32, F16, BF16, F64.
  std::vector<float> read_f32(std::string_view name) const;
  // FP8: block exponents of a tensor whose scales are powers of two; false when they are not all,
  // or when one is below 2^-41 (such a tensor is decoded with a rounding instead).
  bool read_scale_exponents(const TensorEntry& tensor, std::vector<int8_t>* exps) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loongforge::ir
