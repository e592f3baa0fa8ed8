// The block formats of GGUF tensors: a table, and one function per format that turns blocks into
// fp32. A format whose function is null is known (its tensors are listed and checked) but cannot be
// read; to add it, write its function. For the .cpp files of formats/ only. Thread-safety: pure
// functions.
#pragma once

#include <cstdint>
#include <optional>

#include "tensor/dtype.h"

namespace loongforge::formats {

struct GgufType {
  uint32_t id;
  const char* name;
  uint32_t block_elements;
  uint32_t block_bytes;
  std::optional<tensor::DType> dtype;  // plain elements
  // out holds blocks * block_elements values. Needs no alignment.
  void (*dequantise)(const uint8_t* in, int64_t blocks, float* out) noexcept;
};

const GgufType* find_gguf_type(uint32_t id) noexcept;  // null when unknown

}  // namespace loongforge::formats
