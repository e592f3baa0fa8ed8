#include "ir/model.h"

#include "base/error.h"
#include "ir/layout.h"

namespace loongforge::ir {

int64_t TensorEntry::rows() const { return shape.size() < 2 ? 1 : shape[0]; }

int64_t TensorEntry::cols() const {
  int64_t product = 1;
  for (size_t i = shape.size() < 2 ? 0 : 1; i < shape.size(); ++i) product *= shape[i];
  return product;
}

uint64_t TensorEntry::row_bytes() const {
  return tensor::dtype_row_bytes(dtype, static_cast<uint64_t>(cols()));
}

uint64_t TensorEntry::row_stride() const { return round_up(row_bytes(), kRowAlignment); }

const TensorEntry* Model::find_tensor(std::string_view name) const {
  for (const TensorEntry& entry : tensors) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::set<std::string_view> Model::companion_names() const {
  std::set<std::string_view> names;
  for (const TensorEntry& entry : tensors) {
    if (!entry.crc.empty()) names.insert(entry.crc);
    if (!entry.scale.empty()) names.insert(entry.scale);
    names.insert(entry.companions.begin(), entry.companions.end());
  }
  return names;
}

const TensorEntry& Model::stored_tensor(std::string_view name) const {
  const TensorEntry* entry = find_tensor(name);
  // An alias names a stored tensor, never another alias (validated when a model is read and
  // written).
  if (entry != nullptr && !entry->alias_of.empty()) entry = find_tensor(entry->alias_of);
  if (entry == nullptr) throw_bad_data(std::string(name), "the model holds no such tensor");
  return *entry;
}

}  // namespace loongforge::ir
