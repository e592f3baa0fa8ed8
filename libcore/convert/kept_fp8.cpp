#include "convert/kept_fp8.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "tensor/convert.h"

namespace loongforge::convert {
namespace {

using tensor::DType;

// values * factor, a power of two, each in its own type. False where one cannot be had exactly.
bool scale_exactly(DType dtype, float factor, std::vector<uint8_t>* bytes) {
  const size_t count = bytes->size() / tensor::dtype_bytes(dtype);
  std::vector<float> values(count), back(count);
  tensor::to_f32(dtype, bytes->data(), count, values.data());
  std::vector<float> scaled = values;
  for (float& value : scaled) value *= factor;
  std::vector<uint8_t> out(bytes->size());
  tensor::from_f32(dtype, scaled.data(), count, out.data());
  tensor::to_f32(dtype, out.data(), count, back.data());
  for (size_t i = 0; i < count; ++i) {
    if (!std::isfinite(back[i]) || back[i] / factor != values[i]) return false;
  }
  *bytes = std::move(out);
  return true;
}

}  // namespace

ir::TensorEntry kept_entry(const formats::QuantizedTensor& tensor, const std::string& name) {
  ir::TensorEntry entry;
  entry.name = name;
  entry.dtype = DType::kE4M3LA;
  entry.shape = tensor.shape;
  entry.block_rows = tensor.block_rows;
  entry.block_cols = tensor.block_cols;
  entry.scale_dtype = *tensor.scale->dtype;
  entry.source_scale = {tensor.scale->name, tensor.scale->shape};
  return entry;
}

std::vector<ir::TensorEntry> carried_entries(const formats::QuantizedTensor& tensor) {
  std::vector<ir::TensorEntry> out;
  for (const formats::StoredTensor* each : tensor.companions) {
    ir::TensorEntry& entry = out.emplace_back();
    entry.name = each->name;
    entry.dtype = *each->dtype;
    entry.shape = each->shape;
  }
  return out;
}

std::vector<uint8_t> stored_bytes(const formats::TensorSource& stored,
                                  const formats::StoredTensor& tensor) {
  std::vector<uint8_t> bytes(tensor.bytes);
  stored.read_range(tensor, 0, bytes);
  return bytes;
}

std::vector<uint8_t> kept_scales(const formats::TensorSource& stored,
                                 const formats::QuantizedTensor& tensor) {
  std::vector<uint8_t> bytes = stored_bytes(stored, *tensor.scale);
  if (!scale_exactly(*tensor.scale->dtype, 32.0f, &bytes)) {
    throw_bad_data(tensor.scale->where(),
                   "holds a scale that is not finite or, times 32, beyond " + tensor.scale->type,
                   "--quantize bf16 decodes the checkpoint instead of keeping it");
  }
  return bytes;
}

RowSource kept_rows(const formats::TensorSource& stored, const formats::QuantizedTensor& tensor) {
  RowSource rows;
  rows.rows = tensor.shape[0];
  rows.cols = tensor.shape[1];
  rows.stored = DType::kE4M3LA;  // the same codes
  const formats::StoredTensor* codes = tensor.codes;
  rows.read_raw = [&stored, codes](int64_t r0, int64_t r1, std::span<uint8_t> out) {
    stored.read_rows(*codes, r0, r1, out);
  };
  return rows;
}

std::vector<uint8_t> dense_bytes(const ir::Reader& reader, const ir::TensorEntry& tensor) {
  const uint64_t stride = tensor.row_stride(), row = tensor.row_bytes();
  const size_t rows = static_cast<size_t>(tensor.rows());
  std::vector<uint8_t> padded(rows * stride), dense(rows * row);
  reader.read_rows(tensor, 0, tensor.rows(), padded);
  for (size_t r = 0; r < rows; ++r)
    std::memcpy(dense.data() + r * row, padded.data() + r * stride, row);
  return dense;
}

std::vector<uint8_t> source_scales(const ir::Reader& reader, const ir::TensorEntry& tensor) {
  const ir::TensorEntry& scale = reader.model().stored_tensor(tensor.scale);
  std::vector<uint8_t> bytes = dense_bytes(reader, scale);
  if (!scale_exactly(scale.dtype, 1.0f / 32.0f, &bytes)) {
    throw_bad_data(reader.folder().string() + ": " + scale.name,
                   "is not 32 times the scale of an FP8 checkpoint", "convert the model again");
  }
  return bytes;
}

bool holds_kept_fp8(const ir::Model& model) {
  return std::any_of(model.tensors.begin(), model.tensors.end(),
                     [](const ir::TensorEntry& entry) { return !entry.source_scale.name.empty(); });
}

}  // namespace loongforge::convert
