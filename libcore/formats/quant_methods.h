// The methods of quantization_config that are understood, for quantized_source.cpp: each is a file
// of its own that plans (which tensors are whose, checked) and decodes.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json_keys.h"
#include "formats/quantized_source.h"

namespace loongforge::formats {

// What a plan found: the quantised weights, and the names of every stored tensor that belongs to
// one (codes, scales, companions).
struct QuantPlan {
  std::vector<QuantizedTensor> tensors;
  std::vector<std::string> claimed;
};

struct QuantMethod {
  std::string_view name;  // quant_method
  QuantPlan (*plan)(const TensorSource& stored, const Keys& config);
};

// fp8_checkpoint.cpp
QuantPlan plan_finegrained_fp8(const TensorSource& stored, const Keys& config);
QuantPlan plan_compressed_tensors(const TensorSource& stored, const Keys& config);
QuantPlan plan_fbgemm_fp8(const TensorSource& stored, const Keys& config);
void read_fp8_rows(const TensorSource& stored, const QuantizedTensor& tensor, int64_t row0,
                   int64_t row1, std::span<float> out);

// nf4_checkpoint.cpp
QuantPlan plan_bitsandbytes(const TensorSource& stored, const Keys& config);
void read_nf4_rows(const TensorSource& stored, const QuantizedTensor& tensor, int64_t row0,
                   int64_t row1, std::span<float> out);

std::string shape_text(const std::vector<int64_t>& shape);  // "[2, 3]"

}  // namespace loongforge::formats
