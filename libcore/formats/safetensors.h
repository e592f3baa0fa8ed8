// safetensors files: reader and streaming writer.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "formats/tensor_source.h"

namespace loongforge::formats {

// Opening validates the whole header: length, JSON without duplicate keys, known dtypes, shapes
// without overflow, sizes, tensors that tile the data without hole or overlap up to the exact end
// of the file.
class LF_API SafetensorsFile : public TensorSource {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  std::string_view format() const noexcept override { return "safetensors"; }
  void read_range(const StoredTensor& tensor, uint64_t offset,
                  std::span<uint8_t> out) const override;

 private:
  void parse_header(std::string_view json, uint64_t data_begin, uint64_t file_size);
  File file_;
};

// A tensor to be written.
struct LF_API NewTensor {
  std::string name;
  tensor::DType dtype{};
  std::vector<int64_t> shape;

  uint64_t bytes() const;  // kBadData Error on a negative dimension or overflow
};

// Writes one file: the header at once, then the tensors' bytes in any order of tensors, each tensor
// from its first byte to its last. The layout is the reference writer's: dtype by descending
// alignment, then name; header padded to a multiple of
// 8. Written to a sibling temporary file that finish() syncs and renames; without finish() it is
// removed.
// `__metadata__` is {"format": "pt"} and the caller's entries.
// Thread-safety: one thread.
class LF_API SafetensorsWriter {
 public:
  // Throws kBadData Error on duplicate names, on a tensor called __metadata__ and on E4M3LA, which
  // the format cannot hold.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<NewTensor> tensors,
                    const std::map<std::string, std::string>& metadata = {});
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  void write(std::string_view name, std::span<const uint8_t> bytes);  // the tensor's next bytes
  bool complete() const noexcept;  // every tensor has all its bytes
  void finish();                   // REQUIRES complete()

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// safetensors' spelling of a dtype; nullptr for E4M3LA.
LF_API const char* safetensors_dtype(tensor::DType dtype) noexcept;

}  // namespace loongforge::formats
