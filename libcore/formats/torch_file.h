// torch.save()'s files of a state_dict: pytorch_model.bin, .pt, .pth. A zip file of stored entries
// whose pickle is read as data: no code of the file is ever run (zip.h, pickle.h). Files of torch
// before 1.6, which are no zip files, are refused by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/tensor_source.h"

namespace loongforge::formats {

struct PickledTensor;
class StridedView;
struct ZipEntry;

// Tensors may be views of any stride and share storages (tied weights, transposes, slices): each is
// read as a dense tensor of its own, gathered from the file as it is asked for. A tensor never has
// more elements than its storage, so what the file makes us read is bounded by it.
class LF_API TorchFile : public TensorSource {
 public:
  explicit TorchFile(const std::filesystem::path& path);
  ~TorchFile() override;

  std::string_view format() const noexcept override { return "torch"; }
  void read_range(const StoredTensor& tensor, uint64_t offset,
                  std::span<uint8_t> out) const override;
  void read_rows_f32(const StoredTensor& tensor, int64_t row0, int64_t row1,
                     std::span<float> out) const override;

 private:
  void add_tensor(const PickledTensor& pickled, const ZipEntry* storage,
                  std::vector<StoredTensor>* tensors);

  File file_;
  std::vector<StridedView> views_;  // StoredTensor::part is an index of it
};

// Whether the file begins as a zip file does.
LF_API bool begins_with_zip(const std::filesystem::path& path);

}  // namespace loongforge::formats
