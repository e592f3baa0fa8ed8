#include "tensor/dtype.h"

namespace loongforge::tensor {
namespace {

struct Entry {
  std::string_view name;
  size_t bytes;
};

// In the order of DType.
constexpr Entry kEntries[] = {
    {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"E4M3LA", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
    {"I64", 8}, {"I32", 4}, {"I16", 2},  {"I8", 1},     {"U8", 1},      {"BOOL", 1},
    {"F64", 8}, {"U16", 2}, {"U32", 4},  {"U64", 8},    {"NF4", 0},
};
static_assert(sizeof kEntries / sizeof kEntries[0] == static_cast<size_t>(DType::kNf4) + 1);

}  // namespace

size_t dtype_bytes(DType dtype) noexcept { return kEntries[static_cast<size_t>(dtype)].bytes; }

uint64_t dtype_row_bytes(DType dtype, uint64_t elements) noexcept {
  return dtype == DType::kNf4 ? (elements + 1) / 2 : elements * dtype_bytes(dtype);
}

std::string_view dtype_name(DType dtype) noexcept {
  return kEntries[static_cast<size_t>(dtype)].name;
}

std::optional<DType> parse_dtype(std::string_view name) noexcept {
  for (size_t i = 0; i < sizeof kEntries / sizeof kEntries[0]; ++i) {
    if (kEntries[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace loongforge::tensor
