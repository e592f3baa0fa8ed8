#include "formats/safetensors.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "support/json.h"
#include "support/printable.h"

namespace loongforge::formats {

using support::Json;
using support::printable;

namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct Type {
  const char* name;
  unsigned bits;
  std::optional<tensor::DType> dtype;
};

// The format's types by ascending alignment, which is the reference writer's order backwards.
constexpr Type kTypes[] = {
    {"BOOL", 8, tensor::DType::kBool},
    {"F4", 4, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"U8", 8, tensor::DType::kU8},
    {"I8", 8, tensor::DType::kI8},
    {"F8_E5M2", 8, tensor::DType::kF8E5M2},
    {"F8_E4M3", 8, tensor::DType::kF8E4M3},
    {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},
    {"I16", 16, tensor::DType::kI16},
    {"U16", 16, tensor::DType::kU16},
    {"F16", 16, tensor::DType::kF16},
    {"BF16", 16, tensor::DType::kBF16},
    {"I32", 32, tensor::DType::kI32},
    {"U32", 32, tensor::DType::kU32},
    {"F32", 32, tensor::DType::kF32},
    {"C64", 64, {}},
    {"F64", 64, tensor::DType::kF64},
    {"I64", 64, tensor::DType::kI64},
    {"U64", 64, tensor::DType::kU64},
};

const Type* find_type(std::string_view name) {
  for (const Type& type : kTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

// Nothing when a value is no integer >= 0.
std::optional<uint64_t> as_size(const Json& value) {
  if (!value.is_int() || value.as_int() < 0) return std::nullopt;
  return static_cast<uint64_t>(value.as_int());
}

// The stored size; nothing on overflow or when the bits do not fill bytes.
std::optional<uint64_t> stored_bytes(const std::vector<int64_t>& shape, unsigned bits) {
  uint64_t n = 1;
  for (int64_t d : shape) {
    if (__builtin_mul_overflow(n, static_cast<uint64_t>(d), &n)) return std::nullopt;
  }
  if (__builtin_mul_overflow(n, uint64_t{bits}, &n) || n % 8 != 0) return std::nullopt;
  return n / 8;
}

// One entry of the header. offset and bytes are those that the entry claims.
StoredTensor parse_entry(const std::string& name, const Json& entry, const std::string& file) {
  StoredTensor tensor;
  tensor.name = name;
  tensor.file = file;
  const std::string where = tensor.where();
  const Json* dtype = entry.find("dtype");
  const Json* shape = entry.find("shape");
  const Json* offsets = entry.find("data_offsets");
  if (dtype == nullptr || shape == nullptr || offsets == nullptr) {
    throw_bad_data(where, "the header's entry lacks dtype, shape or data_offsets");
  }
  if (!dtype->is_string())
    throw_bad_data(where, std::string("dtype is ") + dtype->type_name() + ", not string");
  const Type* type = find_type(dtype->as_string());
  if (type == nullptr)
    throw_bad_data(where, "unknown dtype \"" + printable(dtype->as_string(), 40) + "\"");
  tensor.type = type->name;
  tensor.dtype = type->dtype;
  if (!shape->is_array())
    throw_bad_data(where, std::string("shape is ") + shape->type_name() + ", not array");
  for (const Json& dimension : shape->as_array()) {
    const std::optional<uint64_t> d = as_size(dimension);
    if (!d)
      throw_bad_data(
          where, "shape " + printable(shape->dump(), 80) + " does not consist of integers >= 0");
    tensor.shape.push_back(static_cast<int64_t>(*d));
  }
  const std::optional<uint64_t> bytes = stored_bytes(tensor.shape, type->bits);
  if (!bytes)
    throw_bad_data(where, "shape " + printable(shape->dump(), 80) + " of " + type->name +
                              " has no valid size");
  std::optional<uint64_t> begin, end;
  if (offsets->is_array() && offsets->as_array().size() == 2) {
    begin = as_size(offsets->as_array()[0]);
    end = as_size(offsets->as_array()[1]);
  }
  if (!begin || !end || *end < *begin) {
    throw_bad_data(where,
                   "data_offsets " + printable(offsets->dump(), 80) + " are not [begin, end]");
  }
  if (*end - *begin != *bytes) {
    throw_bad_data(where, "data_offsets hold " + std::to_string(*end - *begin) +
                              " bytes, but shape " + printable(shape->dump(), 80) + " of " +
                              type->name + " takes " + std::to_string(*bytes));
  }
  tensor.offset = *begin;
  tensor.bytes = *bytes;
  return tensor;
}

std::map<std::string, std::string> parse_metadata(const Json& metadata, const std::string& file) {
  if (!metadata.is_object())
    throw_bad_data(file, std::string("__metadata__ is ") + metadata.type_name() + ", not object");
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : metadata.as_object()) {
    if (!value.is_string())
      throw_bad_data(
          file, "__metadata__." + printable(key) + " is " + value.type_name() + ", not string");
    out.emplace(key, value.as_string());
  }
  return out;
}

// Tensors in the order of their data must follow each other without hole or overlap and end where
// the file ends.
void check_tiling(const std::vector<StoredTensor>& tensors, const std::string& file,
                  uint64_t data_begin, uint64_t file_size) {
  const uint64_t data_size = file_size - data_begin;
  uint64_t end = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.offset != end) {
      throw_bad_data(tensor.where(), "data begins at " + std::to_string(tensor.offset) +
                                         ", but the tensor before it ends at " +
                                         std::to_string(end) +
                                         (tensor.offset > end ? " (a hole)" : " (an overlap)"));
    }
    end = tensor.offset + tensor.bytes;
    if (end > data_size) {
      throw_bad_data(tensor.where(),
                     "data ends at byte " + std::to_string(data_begin + end) +
                         ", but the file has " + std::to_string(file_size),
                     "the file is truncated; fetch it again");
    }
  }
  if (end != data_size) {
    throw_bad_data(file, std::to_string(data_size - end) + " bytes follow the last tensor's data");
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : TensorSource(path), file_(File::open_read(path)) {
  const std::string name = path.string();
  const uint64_t size = file_.size();
  const char* const again = "the file is truncated or no safetensors file; fetch it again";
  if (size < 8)
    throw_bad_data(name, "has " + std::to_string(size) + " bytes, fewer than a safetensors header",
                   again);
  uint8_t prefix[8];
  file_.read_at(0, prefix);
  uint64_t length;
  std::memcpy(&length, prefix, sizeof length);
  if (length > kMaxHeaderBytes) {
    throw_bad_data(name,
                   "the header's length is " + std::to_string(length) +
                       " bytes, above the format's limit of " + std::to_string(kMaxHeaderBytes),
                   "this is no safetensors file");
  }
  if (length > size - 8) {
    throw_bad_data(name,
                   "the header's length is " + std::to_string(length) +
                       " bytes, but the file has " + std::to_string(size),
                   again);
  }
  std::string header(length, '\0');
  file_.read_at(8, {reinterpret_cast<uint8_t*>(header.data()), header.size()});
  if (header.empty() || header[0] != '{')
    throw_bad_data(name, "the header does not begin with {", "this is no safetensors file");
  parse_header(header, 8 + length, size);
}

void SafetensorsFile::parse_header(std::string_view text, uint64_t data_begin, uint64_t file_size) {
  const std::string file = path().string();
  const Json header = Json::parse(text, file);
  std::vector<StoredTensor> tensors;
  for (const auto& [name, entry] : header.as_object("the header")) {
    if (name == "__metadata__") {
      metadata_ = parse_metadata(entry, file);
    } else {
      tensors.push_back(parse_entry(name, entry, file));
    }
  }
  // Empty tensors first where several begin at one place, so that the rest still tiles.
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  check_tiling(tensors, file, data_begin, file_size);
  for (StoredTensor& tensor : tensors) tensor.offset += data_begin;
  set_tensors(std::move(tensors));
}

void SafetensorsFile::read_range(const StoredTensor& tensor, uint64_t offset,
                                 std::span<uint8_t> out) const {
  check_range(tensor, offset, out.size());
  file_.read_at(tensor.offset + offset, out);
}

const char* safetensors_dtype(tensor::DType dtype) noexcept {
  for (const Type& type : kTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return nullptr;
}

uint64_t NewTensor::bytes() const {
  for (int64_t d : shape) {
    if (d < 0) throw_bad_data(printable(name), "a dimension is negative");
  }
  const std::optional<uint64_t> n =
      stored_bytes(shape, static_cast<unsigned>(tensor::dtype_bytes(dtype) * 8));
  if (!n) throw_bad_data(printable(name), "its size overflows");
  return *n;
}

}  // namespace loongforge::formats
