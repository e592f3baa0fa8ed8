#include "formats/tensor_source.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "support/printable.h"
#include "tensor/convert.h"

namespace loongforge::formats {

using support::printable;

int64_t StoredTensor::elements() const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

int64_t StoredTensor::rows() const { return shape.size() < 2 ? 1 : shape[0]; }

int64_t StoredTensor::cols() const {
  int64_t n = 1;
  for (size_t i = shape.size() < 2 ? 0 : 1; i < shape.size(); ++i) n *= shape[i];
  return n;
}

std::string StoredTensor::where() const { return file + ": " + printable(name); }

TensorSource::~TensorSource() = default;

void TensorSource::set_tensors(std::vector<StoredTensor> tensors) {
  tensors_ = std::move(tensors);
  index_.clear();
  index_.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
}

const StoredTensor* TensorSource::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

const StoredTensor& TensorSource::at(std::string_view name) const {
  if (const StoredTensor* tensor = find(name)) return *tensor;
  throw_bad_data(path_.string(), "has no tensor " + printable(name));
}

uint64_t TensorSource::row_bytes(const StoredTensor& tensor) const {
  const auto rows = static_cast<uint64_t>(tensor.rows());
  if (rows == 0) return 0;
  if (tensor.bytes % rows != 0) {
    throw_bad_data(tensor.where(), "rows of type " + tensor.type + " do not end on whole bytes");
  }
  return tensor.bytes / rows;
}

namespace {

void check_row_numbers(const StoredTensor& tensor, int64_t row0, int64_t row1) {
  if (row0 < 0 || row1 < row0 || row1 > tensor.rows()) {
    throw_bad_data(tensor.where(), "has " + std::to_string(tensor.rows()) + " rows, not " +
                                       std::to_string(row0) + " to " + std::to_string(row1));
  }
}

}  // namespace

void TensorSource::check_range(const StoredTensor& tensor, uint64_t offset, size_t size) {
  if (offset > tensor.bytes || size > tensor.bytes - offset) {
    throw_bad_data(tensor.where(), "has " + std::to_string(tensor.bytes) + " bytes, not " +
                                       std::to_string(size) + " at " + std::to_string(offset));
  }
}

void TensorSource::check_rows(const StoredTensor& tensor, int64_t row0, int64_t row1,
                              size_t values) {
  check_row_numbers(tensor, row0, row1);
  if (values != static_cast<uint64_t>(row1 - row0) * static_cast<uint64_t>(tensor.cols())) {
    throw_failed(tensor.where(), "the buffer does not have the rows' size");
  }
}

void TensorSource::throw_unreadable(const StoredTensor& tensor) {
  throw_bad_data(tensor.where(), "tensors of type " + tensor.type + " cannot be read as numbers");
}

void TensorSource::read_rows(const StoredTensor& tensor, int64_t row0, int64_t row1,
                             std::span<uint8_t> out) const {
  check_row_numbers(tensor, row0, row1);
  const uint64_t stride = row_bytes(tensor);
  if (out.size() != static_cast<uint64_t>(row1 - row0) * stride) {
    throw_failed(tensor.where(), "the buffer does not have the rows' size");
  }
  read_range(tensor, static_cast<uint64_t>(row0) * stride, out);
}

bool TensorSource::readable_f32(const StoredTensor& tensor) const {
  return tensor.dtype.has_value() && tensor::converts_to_f32(*tensor.dtype);
}

void TensorSource::read_rows_f32(const StoredTensor& tensor, int64_t row0, int64_t row1,
                                 std::span<float> out) const {
  check_rows(tensor, row0, row1, out.size());
  if (!readable_f32(tensor)) throw_unreadable(tensor);
  const size_t size = tensor::dtype_bytes(*tensor.dtype);
  uint64_t offset = static_cast<uint64_t>(row0) * static_cast<uint64_t>(tensor.cols()) * size;
  if (*tensor.dtype == tensor::DType::kF32) {
    read_range(tensor, offset, {reinterpret_cast<uint8_t*>(out.data()), out.size() * size});
    return;
  }
  std::vector<uint8_t> chunk(std::min<size_t>(out.size() * size, size_t{1} << 18));
  for (size_t done = 0; done < out.size();) {
    const size_t n = std::min(out.size() - done, chunk.size() / size);
    read_range(tensor, offset, {chunk.data(), n * size});
    tensor::to_f32(*tensor.dtype, chunk.data(), n, out.data() + done);
    done += n;
    offset += n * size;
  }
}

std::vector<float> TensorSource::read_f32(const StoredTensor& tensor) const {
  if (!readable_f32(tensor)) throw_unreadable(tensor);  // before anything is allocated
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  read_rows_f32(tensor, 0, tensor.rows(), values);
  return values;
}

}  // namespace loongforge::formats
