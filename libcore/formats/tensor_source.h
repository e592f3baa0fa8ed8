// A set of named tensors in files of some foreign format (safetensors, GGUF, ...), opened and
// validated: every offset and size of tensors() has been checked against the files. Tensors are
// read in ranges; nothing is held in memory but the table. A row is one index of the first
// dimension; tensors of rank 0 and 1 are one row. Data is little-endian, row-major, dense.
// Thread-safety: const members may be called from several threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/api.h"
#include "tensor/dtype.h"

namespace loongforge::formats {

struct LF_API StoredTensor {
  std::string name;
  std::vector<int64_t> shape;  // PyTorch's order: the last dimension is the fastest
  std::string type;            // the format's own spelling: "BF16", "F8_E4M3", "Q4_1"
  std::optional<tensor::DType>
      dtype;  // of the stored elements; empty for block-quantised and for unknown element types
  std::string file;     // path of the file, for errors
  uint64_t bytes = 0;   // stored size
  uint32_t part = 0;    // the source's own: which of its files
  uint64_t offset = 0;  // the source's own: first byte in that file

  int64_t elements() const;  // product of shape; 1 for rank 0
  int64_t rows() const;
  int64_t cols() const;       // elements of a row
  std::string where() const;  // "file: name", for Error::where
};

class LF_API TensorSource {
 public:
  virtual ~TensorSource();
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;

  const std::filesystem::path& path() const noexcept {
    return path_;
  }  // the file or folder it was opened from
  const std::vector<StoredTensor>& tensors() const noexcept {
    return tensors_;
  }                                                       // in the order of the files
  virtual std::string_view format() const noexcept = 0;   // "safetensors", "torch", "gguf"
  const StoredTensor* find(std::string_view name) const;  // null when absent
  const StoredTensor& at(std::string_view name) const;    // kBadData Error when absent
  // safetensors: __metadata__ of the (first) file. Other formats: empty.
  const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }

  // Stored bytes [offset, offset + out.size()) of the tensor. kBadData Error when that is not
  // inside it.
  virtual void read_range(const StoredTensor& tensor, uint64_t offset,
                          std::span<uint8_t> out) const = 0;

  // Rows [row0, row1) as they are stored; out.size() == (row1 - row0) * row_bytes(tensor).
  void read_rows(const StoredTensor& tensor, int64_t row0, int64_t row1,
                 std::span<uint8_t> out) const;
  uint64_t row_bytes(const StoredTensor& tensor)
      const;  // kBadData Error when rows do not end on bytes (4 and 6-bit types)

  // Rows [row0, row1) as fp32 (dequantised where the format knows how; F64 is rounded); out.size()
  // == (row1 - row0) * cols(). kBadData Error naming type and tensor when there is no way.
  virtual void read_rows_f32(const StoredTensor& tensor, int64_t row0, int64_t row1,
                             std::span<float> out) const;
  // False: read_rows_f32 would refuse.
  virtual bool readable_f32(const StoredTensor& tensor) const;

  std::vector<float> read_f32(const StoredTensor& tensor) const;  // the whole tensor

 protected:
  // For implementations of the reading functions: kBadData / kFailed Errors.
  static void check_range(const StoredTensor& tensor, uint64_t offset, size_t size);
  static void check_rows(const StoredTensor& tensor, int64_t row0, int64_t row1, size_t values);
  [[noreturn]] static void throw_unreadable(const StoredTensor& tensor);
  explicit TensorSource(std::filesystem::path path) : path_(std::move(path)) {}
  void set_tensors(std::vector<StoredTensor> tensors);  // REQUIRES unique names
  std::map<std::string, std::string> metadata_;

 private:
  std::filesystem::path path_;
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string_view, size_t> index_;  // views into tensors_
};

// Opens what path is: a GGUF, safetensors or torch file, the index of a sharded checkpoint, or a
// folder that holds a checkpoint (open_hf_checkpoint) or else exactly one GGUF file. kNoInput /
// kBadData Error.
LF_API std::unique_ptr<TensorSource> open_tensor_source(const std::filesystem::path& path);

}  // namespace loongforge::formats
