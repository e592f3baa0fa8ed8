#include "convert/export_rows.h"

#include <cstring>
#include <memory>

#include "base/error.h"
#include "kernels/nf4_format.h"
#include "kernels/quant.h"
#include "tensor/convert.h"

namespace loongforge::convert {
namespace {

using tensor::DType;

void read_dense(const ir::Reader& reader, const ir::TensorEntry& entry, int64_t r0, int64_t r1,
                uint8_t* out) {
  const uint64_t row_bytes = entry.row_bytes(), stride = entry.row_stride();
  const size_t count = static_cast<size_t>(r1 - r0);
  if (row_bytes == stride) {
    reader.read_rows(entry, r0, r1, {out, count * stride});
    return;
  }
  std::vector<uint8_t> padded(count * stride);
  reader.read_rows(entry, r0, r1, padded);
  for (size_t r = 0; r < count; ++r)
    std::memcpy(out + r * row_bytes, padded.data() + r * stride, row_bytes);
}

}  // namespace

RowSource rows_of(const ir::Reader& reader, const ir::TensorEntry& entry, const LoraDelta* delta) {
  RowSource rows;
  rows.rows = entry.rows();
  rows.cols = entry.cols();
  if (delta == nullptr) rows.stored = entry.dtype;
  rows.read_raw = [&reader, &entry](int64_t r0, int64_t r1, std::span<uint8_t> out) {
    read_dense(reader, entry, r0, r1, out.data());
  };
  const bool fp8 = entry.dtype == DType::kE4M3LA, nf4 = entry.dtype == DType::kNf4;
  if (!fp8 && !nf4 && !tensor::converts_to_f32(entry.dtype)) {
    throw_bad_data(
        reader.folder().string() + ": " + entry.name,
        "is " + std::string(tensor::dtype_name(entry.dtype)) + ", which cannot be exported");
  }
  const auto scales = std::make_shared<std::vector<float>>();
  if (fp8 || nf4) *scales = reader.read_f32(entry.scale);
  rows.read_f32 = [&reader, &entry, delta, fp8, nf4, scales](int64_t r0, int64_t r1,
                                                             std::span<float> out) {
    std::vector<uint8_t> raw(static_cast<size_t>(r1 - r0) * entry.row_bytes());
    read_dense(reader, entry, r0, r1, raw.data());
    if (nf4) {
      const int64_t cols = entry.cols(), blocks = kernels::nf4_blocks(cols);
      for (int64_t r = r0; r < r1; ++r)
        kernels::nf4_decode(raw.data() + static_cast<uint64_t>(r - r0) * entry.row_bytes(),
                            scales->data() + r * blocks, cols, out.data() + (r - r0) * cols);
    } else if (!fp8) {
      tensor::to_f32(entry.dtype, raw.data(), out.size(), out.data());
    } else {
      kernels::fp8_decode(kernels::Elem::kE4M3, raw.data(), static_cast<int64_t>(raw.size()),
                          out.data());
      const int64_t cols = entry.cols(), blocks = (cols + entry.block_cols - 1) / entry.block_cols;
      for (int64_t r = r0; r < r1; ++r) {
        const float* scale = scales->data() + r / entry.block_rows * blocks;
        float* row = out.data() + (r - r0) * cols;
        for (int64_t c = 0; c < cols; ++c) row[c] *= scale[c / entry.block_cols];
      }
    }
    if (delta != nullptr) delta->add(r0, r1, out.data());
  };
  return rows;
}

}  // namespace loongforge::convert
