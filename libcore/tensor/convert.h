// Conversions between stored element types and fp32: exact where the target holds the value, else
// rounded to nearest, ties to even. Subnormals, infinities and signed zeros are kept; a NaN stays a
// NaN of the same sign (quiet, upper payload bits kept). F32 -> F16 beyond 65520 gives infinity.
// Input and output need no alignment and must not overlap. Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/api.h"
#include "tensor/dtype.h"

namespace loongforge::tensor {

// One element, by its bits.
LF_API float f16_bits_to_f32(uint16_t bits) noexcept;
LF_API float bf16_bits_to_f32(uint16_t bits) noexcept;
LF_API uint16_t f32_to_f16_bits(float value) noexcept;
LF_API uint16_t f32_to_bf16_bits(float value) noexcept;

LF_API bool converts_to_f32(DType dtype) noexcept;    // F32, F16, BF16, F64
LF_API bool converts_from_f32(DType dtype) noexcept;  // F32, F16, BF16

// n elements. REQUIRES converts_to_f32(dtype) or converts_from_f32(dtype).
LF_API void to_f32(DType dtype, const void* in, size_t n, float* out) noexcept;
LF_API void from_f32(DType dtype, const float* in, size_t n, void* out) noexcept;

}  // namespace loongforge::tensor
