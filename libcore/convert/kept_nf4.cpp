#include "convert/kept_nf4.h"

#include <cmath>

#include "base/error.h"
#include "kernels/nf4_format.h"

namespace loongforge::convert {

bool nf4_can_be_kept(const formats::QuantizedTensor& tensor) {
  return tensor.nf4_block % kernels::kNf4Block == 0 && tensor.shape[1] % tensor.nf4_block == 0;
}

RowSource nf4_rows(const formats::TensorSource& stored, const formats::QuantizedTensor& tensor) {
  RowSource rows;
  rows.rows = tensor.shape[0];
  rows.cols = tensor.shape[1];
  rows.stored = tensor::DType::kNf4;
  const auto row_bytes = static_cast<uint64_t>(rows.cols / 2);
  rows.read_raw = [&stored, &tensor, row_bytes](int64_t r0, int64_t, std::span<uint8_t> out) {
    stored.read_range(*tensor.codes, static_cast<uint64_t>(r0) * row_bytes, out);
  };
  return rows;
}

std::vector<float> nf4_absmax(const formats::TensorSource& stored,
                              const formats::QuantizedTensor& tensor) {
  const int64_t blocks = tensor.shape[0] * (tensor.shape[1] / tensor.nf4_block);
  const int64_t each = tensor.nf4_block / kernels::kNf4Block;
  std::vector<float> out;
  out.reserve(static_cast<size_t>(blocks * each));
  for (const float absmax : formats::read_nf4_absmax(stored, tensor, 0, blocks)) {
    if (!std::isfinite(absmax))
      throw_bad_data(tensor.scale->where(), "holds a value that is not finite");
    out.insert(out.end(), static_cast<size_t>(each), absmax);
  }
  return out;
}

}  // namespace loongforge::convert
