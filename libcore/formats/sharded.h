// Hugging Face checkpoint folders: model.safetensors, or model-0000i-of-0000N.safetensors with
// model.safetensors.index.json; of older models pytorch_model.bin, or pytorch_model-*.bin with
// pytorch_model.bin.index.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors.h"
#include "formats/tensor_source.h"

namespace loongforge::formats {

// The tensors that the index maps. A shard that is absent, a name that its shard lacks, a path that
// leaves the folder are errors; tensors that no entry maps are left out, with one logged warning
// per file.
class LF_API ShardedCheckpoint : public TensorSource {
 public:
  // An index *.bin.index.json is that of torch files, any other of safetensors files.
  explicit ShardedCheckpoint(const std::filesystem::path& index_json);
  void read_range(const StoredTensor& tensor, uint64_t offset,
                  std::span<uint8_t> out) const override;
  void read_rows_f32(const StoredTensor& tensor, int64_t row0, int64_t row1,
                     std::span<float> out) const override;
  std::string_view format() const noexcept override { return files_.front()->format(); }
  size_t shards() const noexcept { return files_.size(); }

 private:
  struct Part {
    const TensorSource* file;
    const StoredTensor* tensor;
  };
  std::vector<std::unique_ptr<TensorSource>> files_;
  std::vector<Part> parts_;  // StoredTensor::part is an index of it
};

// A folder with model.safetensors, its index, pytorch_model.bin or its index: the first of these
// that exists, as transformers does.
LF_API std::unique_ptr<TensorSource> open_hf_checkpoint(const std::filesystem::path& folder);
LF_API bool holds_hf_checkpoint(const std::filesystem::path& folder);

// Writes a checkpoint into an existing folder (a FolderWriter's temporary one). Tensors fill shards
// in the given order, each shard at most max_shard_bytes unless one tensor alone is larger; a
// single shard becomes <stem>.safetensors without index. Bytes may come tensor by tensor in any
// order; the files of one shard are open only while it is incomplete. Thread-safety: one thread.
class LF_API ShardedWriter {
 public:
  ShardedWriter(std::filesystem::path folder, std::vector<NewTensor> tensors,
                uint64_t max_shard_bytes, std::map<std::string, std::string> metadata = {},
                std::string stem = "model");
  ~ShardedWriter();

  void write(std::string_view name, std::span<const uint8_t> bytes);  // the tensor's next bytes
  void finish();  // writes the index; kFailed Error when bytes lack
  size_t shards() const noexcept;
  uint64_t total_bytes() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loongforge::formats
