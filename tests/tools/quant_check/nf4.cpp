// nf4.safetensors: <size>.input and what bitsandbytes made of it, as one row: .single (packed,
// absmax, dequantised) and .double, whose absmax are codes of 8 bits with nested_absmax, nested_map
// and offset.
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "formats/quantized_source.h"
#include "formats/safetensors.h"
#include "kernels/nf4_format.h"
#include "kernels/quant.h"
#include "tools/quant_check/report.h"

namespace loongforge::quant_check {
namespace {

using formats::SafetensorsFile;
using formats::StoredTensor;
using tensor::DType;

const StoredTensor& part(const SafetensorsFile& file, const std::string& name, DType dtype,
                         int64_t elements) {
  const StoredTensor& tensor = file.at(name);
  if (tensor.dtype != dtype || (elements >= 0 && tensor.elements() != elements)) {
    throw_bad_data(tensor.where(), "is not " + std::to_string(elements) + " of " +
                                       std::string(tensor::dtype_name(dtype)));
  }
  return tensor;
}

std::vector<float> decode(const std::vector<uint8_t>& codes, const std::vector<float>& absmax,
                          int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  kernels::nf4_decode(codes.data(), absmax.data(), n, values.data());
  return values;
}

void check_size(const SafetensorsFile& file, const std::string& size, Report* report) {
  const std::vector<float> x = file.read_f32(part(file, size + ".input", DType::kF32, -1));
  const auto n = static_cast<int64_t>(x.size());
  const int64_t blocks = kernels::nf4_blocks(n), bytes = kernels::nf4_row_bytes(n);
  const auto codes_of = [&](const std::string& name) {
    const StoredTensor& tensor = part(file, name, DType::kU8, bytes);
    std::vector<uint8_t> codes(tensor.bytes);
    file.read_range(tensor, 0, codes);
    return codes;
  };
  const std::vector<uint8_t> codes = codes_of(size + ".single.packed");
  const std::vector<float> absmax =
      file.read_f32(part(file, size + ".single.absmax", DType::kF32, blocks));
  std::vector<uint8_t> encoded(codes.size());
  std::vector<float> found(absmax.size());
  kernels::quantize_nf4({x.data(), n, kernels::Elem::kF32}, n, encoded.data(), bytes, found.data(),
                        blocks, 0, 1);
  report->same_codes(size + " encode", encoded, codes);
  report->same_values(size + " absmax", found, absmax);
  report->same_values(size + " decode", decode(codes, absmax, n),
                      file.read_f32(part(file, size + ".single.dequantised", DType::kF32, n)));

  constexpr int64_t kNestedBlock = 256;
  formats::QuantizedTensor nested;
  nested.scale = &part(file, size + ".double.absmax", DType::kU8, blocks);
  nested.nested_absmax = &part(file, size + ".double.nested_absmax", DType::kF32,
                               (blocks + kNestedBlock - 1) / kNestedBlock);
  nested.nested_map = &part(file, size + ".double.nested_map", DType::kF32, 256);
  nested.nested_block = kNestedBlock;
  nested.nested_offset = file.read_f32(part(file, size + ".double.offset", DType::kF32, 1))[0];
  report->same_values(size + " decode, double quantised",
                      decode(codes_of(size + ".double.packed"),
                             formats::read_nf4_absmax(file, nested, 0, blocks), n),
                      file.read_f32(part(file, size + ".double.dequantised", DType::kF32, n)));
}

}  // namespace

void check_nf4(const std::filesystem::path& dir, Report* report) {
  report->begin("nf4: bitsandbytes, single and double quantised");
  const std::filesystem::path path = dir / "nf4.safetensors";
  if (!std::filesystem::exists(path)) return report->absent(path);
  const SafetensorsFile file(path);
  std::vector<std::string> sizes;
  constexpr std::string_view kInput = ".input";
  for (const StoredTensor& tensor : file.tensors()) {
    if (tensor.name.ends_with(kInput))
      sizes.push_back(tensor.name.substr(0, tensor.name.size() - kInput.size()));
  }
  if (sizes.empty()) throw_bad_data(path.string(), "holds no case");
  std::sort(sizes.begin(), sizes.end());
  for (const std::string& size : sizes) check_size(file, size, report);
}

}  // namespace loongforge::quant_check
