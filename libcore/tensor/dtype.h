// Element types of stored tensors, their sizes and names.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/api.h"

namespace loongforge::tensor {

// E4M3LA is the project's FP8 (bias 12); F8E4M3 is OCP's E4M3FN (bias 7): the same codes, values 32
// times as large. NF4 is LoongIR's 4-bit type (kernels/nf4_format.h): two elements a byte along a
// row, the first in the high half.
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kE4M3LA,
  kF8E4M3,
  kF8E5M2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool,
  kF64,
  kU16,
  kU32,
  kU64,
  kNf4
};

LF_API size_t dtype_bytes(DType dtype) noexcept;  // of an element. REQUIRES dtype != kNf4
LF_API uint64_t dtype_row_bytes(DType dtype, uint64_t elements) noexcept;  // dense; of any type
LF_API std::string_view dtype_name(
    DType dtype) noexcept;  // LoongIR spelling: "F32", "BF16", "E4M3LA", "F8_E4M3", ...
LF_API std::optional<DType> parse_dtype(std::string_view name) noexcept;  // of dtype_name

}  // namespace loongforge::tensor
