#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "formats/safetensors.h"
#include "support/json.h"
#include "support/printable.h"

namespace loongforge::formats {

using support::Json;
using support::printable;

namespace {

// Position in the format's list of types, which is sorted by alignment.
int alignment_rank(tensor::DType dtype) {
  using tensor::DType;
  static constexpr DType kOrder[] = {DType::kBool,   DType::kU8,  DType::kI8,  DType::kF8E5M2,
                                     DType::kF8E4M3, DType::kI16, DType::kU16, DType::kF16,
                                     DType::kBF16,   DType::kI32, DType::kU32, DType::kF32,
                                     DType::kF64,    DType::kI64, DType::kU64};
  return static_cast<int>(std::find(std::begin(kOrder), std::end(kOrder), dtype) -
                          std::begin(kOrder));
}

}  // namespace

struct SafetensorsWriter::Impl {
  struct Place {
    uint64_t offset = 0, bytes = 0, written = 0;
  };

  explicit Impl(const std::filesystem::path& path) : file(path) {}

  AtomicFile file;
  std::unordered_map<std::string, Place> places;
  size_t open_tensors = 0;  // those that lack bytes
};

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<NewTensor> tensors,
                                     const std::map<std::string, std::string>& metadata) {
  const std::string where = path.string();
  std::sort(tensors.begin(), tensors.end(), [](const NewTensor& a, const NewTensor& b) {
    const int ra = alignment_rank(a.dtype), rb = alignment_rank(b.dtype);
    return ra != rb ? ra > rb : a.name < b.name;
  });
  Json::Object header, meta;
  std::map<std::string, std::string> all = metadata;
  all["format"] = "pt";
  for (const auto& [key, value] : all) meta.emplace_back(key, value);
  header.emplace_back("__metadata__", std::move(meta));
  std::unordered_map<std::string, Impl::Place> places;
  uint64_t end = 0;
  size_t open_tensors = 0;
  for (const NewTensor& tensor : tensors) {
    const std::string tensor_where = where + ": " + printable(tensor.name);
    const char* dtype = safetensors_dtype(tensor.dtype);
    if (dtype == nullptr) {
      throw_bad_data(tensor_where, "safetensors files cannot hold " +
                                       std::string(tensor::dtype_name(tensor.dtype)));
    }
    if (tensor.name == "__metadata__")
      throw_bad_data(tensor_where, "is no possible name of a tensor");
    const uint64_t bytes = tensor.bytes();
    if (!places.emplace(tensor.name, Impl::Place{end, bytes, 0}).second) {
      throw_bad_data(tensor_where, "stands twice among the tensors to write");
    }
    if (bytes > 0) ++open_tensors;
    Json::Array shape;
    for (int64_t d : tensor.shape) shape.emplace_back(d);
    Json::Array offsets{Json(end)};
    if (__builtin_add_overflow(end, bytes, &end))
      throw_bad_data(tensor_where, "the file's size overflows");
    offsets.emplace_back(end);
    header.emplace_back(
        tensor.name, Json::Object{{"dtype", dtype}, {"shape", shape}, {"data_offsets", offsets}});
  }
  std::string text = Json(std::move(header)).dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > 100'000'000)
    throw_bad_data(where, "the header would be above the format's limit of 100000000 bytes");
  const uint64_t length = text.size();
  std::string prefix(sizeof length, '\0');
  std::memcpy(prefix.data(), &length, sizeof length);
  text.insert(0, prefix);
  for (auto& [name, place] : places) place.offset += text.size();

  impl_ = std::make_unique<Impl>(path);
  impl_->places = std::move(places);
  impl_->open_tensors = open_tensors;
  impl_->file.file().write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::write(std::string_view name, std::span<const uint8_t> bytes) {
  const auto it = impl_->places.find(std::string(name));
  if (it == impl_->places.end())
    throw_failed(impl_->file.final_path().string(),
                 "tensor " + printable(name) + " was not announced");
  Impl::Place& place = it->second;
  if (bytes.size() > place.bytes - place.written) {
    throw_failed(impl_->file.final_path().string() + ": " + printable(name),
                 "more bytes were written than its shape takes");
  }
  if (bytes.empty()) return;
  impl_->file.file().write_at(place.offset + place.written, bytes);
  place.written += bytes.size();
  if (place.written == place.bytes) --impl_->open_tensors;
}

bool SafetensorsWriter::complete() const noexcept { return impl_->open_tensors == 0; }

void SafetensorsWriter::finish() {
  if (!complete()) {
    for (const auto& [name, place] : impl_->places) {
      if (place.written != place.bytes) {
        throw_failed(
            impl_->file.final_path().string() + ": " + printable(name),
            std::to_string(place.bytes - place.written) + " of its bytes were not written");
      }
    }
  }
  impl_->file.commit();
}

}  // namespace loongforge::formats
