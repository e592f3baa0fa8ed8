// GGUF files, versions 2 and 3, read only. Knows the container and the block formats; what names
// and permutations mean is models/ business.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/file.h"
#include "formats/tensor_source.h"

namespace loongforge::formats {

// A metadata value. Integers of every width are int64_t, a u64 above 2^63 - 1 uint64_t (in an
// array: refused); f32 and f64 are double; an array of bool is vector<bool>.
struct LF_API GgufValue {
  using Nested = std::vector<GgufValue>;
  std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<bool>,
               std::vector<int64_t>, std::vector<double>, std::vector<std::string>, Nested>
      value;

  const char* type_name() const;  // "bool", "integer", "float", "string", "array of strings", ...
};

// Opening validates everything: counts against the file's size, types, names, shapes, alignment,
// ranges, overlaps. tensors() have PyTorch's order of dimensions. Integers and unknown block types
// are listed; read_rows_f32 refuses them.
class LF_API GgufFile : public TensorSource {
 public:
  explicit GgufFile(const std::filesystem::path& path);

  std::string_view format() const noexcept override { return "gguf"; }
  void read_range(const StoredTensor& tensor, uint64_t offset,
                  std::span<uint8_t> out) const override;
  void read_rows_f32(const StoredTensor& tensor, int64_t row0, int64_t row1,
                     std::span<float> out) const override;
  bool readable_f32(const StoredTensor& tensor) const override;

  uint32_t version() const noexcept { return version_; }
  uint64_t alignment() const noexcept { return alignment_; }
  const std::vector<std::pair<std::string, GgufValue>>& entries() const noexcept {
    return entries_;
  }

  // Metadata by key. find_meta: null when absent. The get_ functions: nothing when absent, kBadData
  // Error naming file and key when the value has another type. require_: kBadData Error when absent
  // too.
  const GgufValue* find_meta(std::string_view key) const;
  std::optional<int64_t> get_int(std::string_view key) const;
  std::optional<double> get_double(std::string_view key) const;  // integers too
  std::optional<bool> get_bool(std::string_view key) const;
  const std::string* get_string(std::string_view key) const;
  const std::vector<std::string>* get_strings(std::string_view key) const;
  const std::vector<int64_t>* get_ints(std::string_view key) const;
  const std::vector<double>* get_doubles(std::string_view key) const;
  int64_t require_int(std::string_view key) const;
  double require_double(std::string_view key) const;
  const std::string& require_string(std::string_view key) const;

 private:
  template <class T>
  const T* get(std::string_view key, const char* expected) const;
  template <class T>
  const T& require(std::string_view key, const T* value) const;
  void parse();

  File file_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  std::vector<std::pair<std::string, GgufValue>> entries_;
  std::unordered_map<std::string_view, size_t> by_key_;  // views into entries_
};

}  // namespace loongforge::formats
