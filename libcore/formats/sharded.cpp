#include "formats/sharded.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/paths.h"
#include "formats/torch_file.h"
#include "support/counted.h"
#include "support/json.h"
#include "support/printable.h"

namespace loongforge::formats {

using support::Json;
using support::printable;

namespace {

// A name inside the folder, never a path out of it.
bool plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\\') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

// Tensors of a shard that the index does not map: most likely left over from another version of the
// model.
void warn_of_unmapped(const TensorSource& file,
                      const std::unordered_map<std::string_view, size_t>& part_of, size_t part) {
  int64_t count = 0;
  std::string first;
  for (const StoredTensor& tensor : file.tensors()) {
    const auto it = part_of.find(tensor.name);
    if (it != part_of.end() && it->second == part) continue;
    if (count++ == 0) first = printable(tensor.name);
  }
  if (count == 0) return;
  log_warning(file.path().string() + ": " + support::counted(count, "tensor") +
              (count == 1 ? " is" : " are") +
              " not in the index and left out, the first: " + first);
}

}  // namespace

ShardedCheckpoint::ShardedCheckpoint(const std::filesystem::path& index_json)
    : TensorSource(index_json.parent_path()) {
  const std::string where = index_json.string();
  const bool torch = where.ends_with(".bin.index.json");
  const Json index = support::read_json(where);
  const Json* map = index.find("weight_map");
  if (map == nullptr || !map->is_object()) throw_bad_data(where, "has no object weight_map");
  if (map->as_object().empty()) throw_bad_data(where, "weight_map is empty");
  std::set<std::string> names;
  for (const auto& [name, file] : map->as_object()) {
    if (!file.is_string() || !plain_file_name(file.as_string())) {
      throw_bad_data(where + ": " + printable(name), "is mapped to " + printable(file.dump(), 80) +
                                                         ", which is no plain file name");
    }
    names.insert(file.as_string());
  }
  std::unordered_map<std::string_view, size_t> part_of_file, part_of;
  for (const std::string& name : names) {
    const std::filesystem::path path = index_json.parent_path() / name;
    if (!path_exists(path)) {
      const auto& members = map->as_object();
      const auto first = std::find_if(
          members.begin(), members.end(),
          [&](const Json::Member& member) { return member.second.as_string() == name; });
      throw_bad_data(path.string(),
                     "does not exist, but the index maps " + printable(first->first) + " to it",
                     "fetch the missing file");
    }
    part_of_file.emplace(name, files_.size());
    if (torch) {
      files_.push_back(std::make_unique<TorchFile>(path));
    } else {
      files_.push_back(std::make_unique<SafetensorsFile>(path));
    }
  }
  for (const auto& [name, file] : map->as_object()) {
    const size_t part = part_of_file.at(file.as_string());
    if (files_[part]->find(name) == nullptr) {
      throw_bad_data(files_[part]->path().string() + ": " + printable(name),
                     "the index maps the tensor to this file, which lacks it");
    }
    part_of.emplace(name, part);
  }
  std::vector<StoredTensor> tensors;
  for (size_t part = 0; part < files_.size(); ++part) {
    warn_of_unmapped(*files_[part], part_of, part);
    for (const StoredTensor& tensor : files_[part]->tensors()) {
      const auto it = part_of.find(tensor.name);
      if (it == part_of.end() || it->second != part) continue;
      tensors.push_back(tensor);
      tensors.back().part = static_cast<uint32_t>(parts_.size());
      parts_.push_back({files_[part].get(), &tensor});
    }
  }
  set_tensors(std::move(tensors));
  metadata_ = files_.front()->metadata();
}

void ShardedCheckpoint::read_range(const StoredTensor& tensor, uint64_t offset,
                                   std::span<uint8_t> out) const {
  const Part& part = parts_.at(tensor.part);
  part.file->read_range(*part.tensor, offset, out);
}

void ShardedCheckpoint::read_rows_f32(const StoredTensor& tensor, int64_t row0, int64_t row1,
                                      std::span<float> out) const {
  const Part& part = parts_.at(tensor.part);
  part.file->read_rows_f32(*part.tensor, row0, row1, out);
}

namespace {

constexpr const char* kCheckpointFiles[] = {"model.safetensors", "model.safetensors.index.json",
                                            "pytorch_model.bin", "pytorch_model.bin.index.json"};

// Empty when the folder holds none.
std::filesystem::path checkpoint_file(const std::filesystem::path& folder) {
  for (const char* name : kCheckpointFiles) {
    if (path_exists(folder / name)) return folder / name;
  }
  return {};
}

}  // namespace

bool holds_hf_checkpoint(const std::filesystem::path& folder) {
  return !checkpoint_file(folder).empty();
}

std::unique_ptr<TensorSource> open_hf_checkpoint(const std::filesystem::path& folder) {
  if (!folder_exists(folder)) throw_absent(folder.string(), "is no folder");
  const std::filesystem::path file = checkpoint_file(folder);
  if (file.empty()) {
    throw_no_input(folder.string(),
                   "holds neither model.safetensors nor pytorch_model.bin, nor the index of either",
                   hub_cache_hint(folder));
  }
  if (file.extension() == ".json") return std::make_unique<ShardedCheckpoint>(file);
  if (file.extension() == ".bin") return std::make_unique<TorchFile>(file);
  return std::make_unique<SafetensorsFile>(file);
}

namespace {

std::string shard_name(const std::string& stem, size_t index, size_t count) {
  if (count == 1) return stem + ".safetensors";
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "-%05zu-of-%05zu.safetensors", index + 1, count);
  return stem + numbers;
}

}  // namespace

struct ShardedWriter::Impl {
  struct Shard {
    std::vector<NewTensor> tensors;
    std::unique_ptr<SafetensorsWriter> writer;  // while it is incomplete
    bool finished = false;
  };

  void open(size_t index) {
    Shard& shard = shards[index];
    if (shard.finished) throw_failed((folder / file_name(index)).string(), "is complete already");
    if (shard.writer == nullptr) {
      shard.writer =
          std::make_unique<SafetensorsWriter>(folder / file_name(index), shard.tensors, metadata);
    }
  }

  void close(size_t index) {
    shards[index].writer->finish();
    shards[index].writer.reset();
    shards[index].finished = true;
  }

  std::string file_name(size_t index) const { return shard_name(stem, index, shards.size()); }

  std::filesystem::path folder;
  std::string stem;
  std::map<std::string, std::string> metadata;
  std::vector<Shard> shards;
  std::unordered_map<std::string, size_t> shard_of;
  uint64_t total_bytes = 0;
  int64_t total_elements = 0;
};

ShardedWriter::ShardedWriter(std::filesystem::path folder, std::vector<NewTensor> tensors,
                             uint64_t max_shard_bytes, std::map<std::string, std::string> metadata,
                             std::string stem)
    : impl_(std::make_unique<Impl>()) {
  impl_->folder = std::move(folder);
  impl_->stem = std::move(stem);
  impl_->metadata = std::move(metadata);
  uint64_t filled = 0;
  impl_->shards.emplace_back();
  for (NewTensor& tensor : tensors) {
    const uint64_t bytes = tensor.bytes();
    Impl::Shard* shard = &impl_->shards.back();
    if (!shard->tensors.empty() && (bytes > max_shard_bytes || filled > max_shard_bytes - bytes)) {
      shard = &impl_->shards.emplace_back();
      filled = 0;
    }
    filled += bytes;
    if (!impl_->shard_of.emplace(tensor.name, impl_->shards.size() - 1).second) {
      throw_bad_data(impl_->folder.string() + ": " + printable(tensor.name),
                     "stands twice among the tensors to write");
    }
    if (__builtin_add_overflow(impl_->total_bytes, bytes, &impl_->total_bytes)) {
      throw_bad_data(impl_->folder.string() + ": " + printable(tensor.name),
                     "the checkpoint's size overflows");
    }
    impl_->total_elements += static_cast<int64_t>(bytes / tensor::dtype_bytes(tensor.dtype));
    shard->tensors.push_back(std::move(tensor));
  }
}

ShardedWriter::~ShardedWriter() = default;

void ShardedWriter::write(std::string_view name, std::span<const uint8_t> bytes) {
  const auto it = impl_->shard_of.find(std::string(name));
  if (it == impl_->shard_of.end())
    throw_failed(impl_->folder.string(), "tensor " + printable(name) + " was not announced");
  if (bytes.empty()) return;
  impl_->open(it->second);
  SafetensorsWriter& writer = *impl_->shards[it->second].writer;
  writer.write(name, bytes);
  if (writer.complete()) impl_->close(it->second);
}

void ShardedWriter::finish() {
  for (size_t i = 0; i < impl_->shards.size(); ++i) {
    if (impl_->shards[i].finished) continue;
    impl_->open(i);  // of a shard whose tensors are all empty: never written to
    impl_->close(i);
  }
  if (impl_->shards.size() == 1) return;
  Json::Object map;
  for (size_t i = 0; i < impl_->shards.size(); ++i) {
    for (const NewTensor& tensor : impl_->shards[i].tensors)
      map.emplace_back(tensor.name, impl_->file_name(i));
  }
  Json::Object metadata{{"total_parameters", impl_->total_elements},
                        {"total_size", Json(impl_->total_bytes)}};
  const Json index(Json::Object{{"metadata", std::move(metadata)}, {"weight_map", std::move(map)}});
  write_text_atomic(impl_->folder / (impl_->stem + ".safetensors.index.json"),
                    index.dump(2, true) + "\n");
}

size_t ShardedWriter::shards() const noexcept { return impl_->shards.size(); }
uint64_t ShardedWriter::total_bytes() const noexcept { return impl_->total_bytes; }

}  // namespace loongforge::formats
