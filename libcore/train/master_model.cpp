#include "train/master_model.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/file_ops.h"
#include "base/paths.h"
#include "ir/writer.h"
#include "train/scaling_io.h"

namespace loongforge::train {
namespace {

namespace fs = std::filesystem;

bool is_weight_or_description(const std::string& name) {
  return name == "loongir_model.json" || name.ends_with(".lir") || name == "manifest.json" ||
         name == "trainer_state.json" || name == "optimizer.safetensors" || name == kScalingFile;
}

void copy_tensor(const ir::Reader& source, const ir::TensorEntry& entry, ir::Writer* writer) {
  ir::TensorEntry copy = entry;
  copy.source_scale = {};  // the model is no longer the checkpoint it came from
  writer->begin_tensor(copy);
  constexpr int64_t kStripe = 128 * 16;
  const uint64_t stride = entry.row_stride(), row = entry.row_bytes();
  std::vector<uint8_t> padded, dense;
  for (int64_t r = 0; r < entry.rows(); r += kStripe) {
    const int64_t n = std::min(kStripe, entry.rows() - r);
    padded.resize(static_cast<size_t>(n) * stride);
    dense.resize(static_cast<size_t>(n) * row);
    source.read_rows(entry, r, r + n, padded);
    for (int64_t i = 0; i < n; ++i)
      std::copy_n(padded.data() + static_cast<uint64_t>(i) * stride, row,
                  dense.data() + static_cast<uint64_t>(i) * row);
    writer->write_rows(dense.data(), n);
  }
  if (!entry.scale.empty()) writer->set_scales(source.read_f32(entry.scale));
  writer->finish_tensor();
}

}  // namespace

uint64_t bytes_beside_weights(const fs::path& model) {
  uint64_t bytes = 0;
  for (const fs::path& file : folder_entries(model))
    if (file_exists(file) && !is_weight_or_description(file.filename().string()))
      bytes += file_bytes(file);
  return bytes;
}

void write_master_model(const fs::path& folder, const ir::Reader& source,
                        const graph::Parameters& params) {
  const ir::Model& model = source.model();
  std::map<std::string, const graph::Trainable*> trained;
  for (const graph::Trainable& t : params.trainables()) trained[t.name] = &t;
  const std::set<std::string_view> companions = model.companion_names();
  // The writer makes a folder of its own under a temporary name; its files are then moved up.
  const fs::path inner = folder / "model";
  const uint64_t page = model.device == "loongarch64" ? 16384 : 4096;
  ir::Writer writer(inner, false, page);
  for (const ir::TensorEntry& entry : model.tensors) {
    if (companions.contains(entry.name)) continue;
    if (!entry.alias_of.empty()) {
      writer.add_alias(entry.name, entry.alias_of, entry.source_had_both);
      continue;
    }
    auto it = trained.find(entry.name);
    if (it == trained.end()) {
      copy_tensor(source, entry, &writer);
      continue;
    }
    ir::TensorEntry master;
    master.name = entry.name;
    const graph::Trainable& t = *it->second;
    const bool narrow = t.master == kernels::Elem::kBf16;
    master.dtype = narrow ? tensor::DType::kBF16 : tensor::DType::kF32;
    master.shape = entry.shape;
    writer.begin_tensor(master);
    writer.write_rows(narrow ? static_cast<const void*>(params.masters_bf16() + t.master_offset)
                             : static_cast<const void*>(params.masters() + t.master_offset),
                      master.rows());
    writer.finish_tensor();
  }
  for (const fs::path& file : folder_entries(source.folder()))
    if (file_exists(file) && !is_weight_or_description(file.filename().string()))
      writer.add_file(file, file.filename().string());
  ir::Model out = model;
  out.quantize = "fp32";
  out.config.erase("quantization_config");
  out.tensors.clear();
  writer.finish(std::move(out));
  for (const fs::path& file : folder_entries(inner)) rename_path(file, folder / file.filename());
  remove_tree(inner);
}

}  // namespace loongforge::train
