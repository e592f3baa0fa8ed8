#include "tensor/dtype.h"

#include <doctest/doctest.h>

using loongforge::tensor::DType;
using loongforge::tensor::dtype_bytes;
using loongforge::tensor::dtype_name;
using loongforge::tensor::parse_dtype;

TEST_CASE("dtype: names and sizes") {
  const struct {
    DType dtype;
    const char* name;
    size_t bytes;
  } cases[] = {
      {DType::kF32, "F32", 4},       {DType::kF16, "F16", 2},        {DType::kBF16, "BF16", 2},
      {DType::kE4M3LA, "E4M3LA", 1}, {DType::kF8E4M3, "F8_E4M3", 1}, {DType::kF8E5M2, "F8_E5M2", 1},
      {DType::kI64, "I64", 8},       {DType::kI32, "I32", 4},        {DType::kI16, "I16", 2},
      {DType::kI8, "I8", 1},         {DType::kU8, "U8", 1},          {DType::kBool, "BOOL", 1},
      {DType::kF64, "F64", 8},       {DType::kU16, "U16", 2},        {DType::kU32, "U32", 4},
      {DType::kU64, "U64", 8}};
  for (const auto& c : cases) {
    CHECK(dtype_name(c.dtype) == c.name);
    CHECK(dtype_bytes(c.dtype) == c.bytes);
    CHECK(parse_dtype(c.name) == c.dtype);
  }
  CHECK(parse_dtype("NF4") == DType::kNf4);
  CHECK(dtype_name(DType::kNf4) == "NF4");
  CHECK(loongforge::tensor::dtype_row_bytes(DType::kNf4, 7) == 4);
  CHECK(loongforge::tensor::dtype_row_bytes(DType::kNf4, 8) == 4);
  CHECK(loongforge::tensor::dtype_row_bytes(DType::kBF16, 7) == 14);
  CHECK_FALSE(parse_dtype("f32").has_value());
  CHECK_FALSE(parse_dtype("").has_value());
}
