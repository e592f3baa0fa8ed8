#include "formats/torch_file.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "base/log.h"
#include "formats/pickle.h"
#include "formats/strided.h"
#include "formats/zip.h"
#include "support/printable.h"
#include "tensor/convert.h"

namespace loongforge::formats {

using support::printable;

namespace {

// The pickle of 0x1950a86a20f9469cfc6c, with which files of torch before 1.6 begin.
constexpr uint8_t kLegacy[] = {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                               0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

void refuse_legacy(const File& file) {
  uint8_t bytes[2 + sizeof kLegacy];  // PROTO n first
  if (file.size() < sizeof bytes) return;
  file.read_at(0, bytes);
  if (std::memcmp(bytes + 2, kLegacy, sizeof kLegacy) != 0) return;
  throw_bad_data(file.path().string(),
                 "is a torch file of the form before torch 1.6, which cannot be read",
                 "load it with torch and save it again, best with safe_serialization=True");
}

// The folder inside the zip file, taken from the entry <folder>/data.pkl.
std::string find_prefix(const std::vector<ZipEntry>& entries, const std::string& file) {
  const ZipEntry* found = nullptr;
  for (const ZipEntry& entry : entries) {
    if (!entry.name.ends_with("/data.pkl")) continue;
    if (found != nullptr) {
      throw_bad_data(
          file, "has two pickles, " + printable(found->name) + " and " + printable(entry.name));
    }
    found = &entry;
  }
  if (found == nullptr)
    throw_bad_data(file, "is a zip file without data.pkl", "this is no torch file");
  return found->name.substr(0, found->name.size() - std::strlen("data.pkl"));
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

// Elements of the view, and that all of them are inside the storage.
int64_t check_view(const PickledTensor& tensor, const std::string& where) {
  const std::string view = "its view of size " + printable(shape_text(tensor.shape), 80) +
                           ", stride " + printable(shape_text(tensor.stride), 80) + " at element " +
                           std::to_string(tensor.offset) + " ";
  int64_t elements = 1, last = tensor.offset;
  if (tensor.offset < 0) throw_bad_data(where, view + "begins before its storage");
  const bool empty =
      std::find(tensor.shape.begin(), tensor.shape.end(), int64_t{0}) != tensor.shape.end();
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    const int64_t extent = tensor.shape[i], stride = tensor.stride[i];
    if (extent < 0 || stride < 0) throw_bad_data(where, view + "has a negative number");
    int64_t step = 0;
    // The product is kept within bounds for empty tensors too: their rows are counted.
    if (__builtin_mul_overflow(elements, std::max<int64_t>(extent, 1), &elements) ||
        (!empty && (__builtin_mul_overflow(extent - 1, stride, &step) ||
                    __builtin_add_overflow(last, step, &last)))) {
      throw_bad_data(where, view + "overflows");
    }
  }
  if (empty) return 0;
  if (last >= tensor.storage_elements) {
    throw_bad_data(where, view + "ends beyond its storage of " +
                              std::to_string(tensor.storage_elements) + " elements");
  }
  if (elements > tensor.storage_elements) {
    throw_bad_data(where, view + "repeats elements: it has " + std::to_string(elements) +
                              ", its storage " + std::to_string(tensor.storage_elements));
  }
  return elements;
}

}  // namespace

TorchFile::~TorchFile() = default;

TorchFile::TorchFile(const std::filesystem::path& path)
    : TensorSource(path), file_(File::open_read(path)) {
  const std::string name = path.string();
  refuse_legacy(file_);
  const std::vector<ZipEntry> entries = read_zip_directory(file_);
  const std::string prefix = find_prefix(entries, name);
  std::unordered_map<std::string_view, const ZipEntry*> by_name;
  for (const ZipEntry& entry : entries) by_name.emplace(entry.name, &entry);
  if (const auto order = by_name.find(prefix + "byteorder"); order != by_name.end()) {
    std::string text(static_cast<size_t>(std::min<uint64_t>(order->second->bytes, 16)), '\0');
    file_.read_at(order->second->offset, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
    if (text != "little") {
      throw_bad_data(name, "has the byte order \"" + printable(text) + "\"",
                     "only files of little-endian machines can be read");
    }
  }
  const ZipEntry& pickle = *by_name.at(prefix + "data.pkl");
  if (pickle.bytes > kMaxPickleBytes) {
    throw_bad_data(name + ": " + printable(pickle.name), "has " + std::to_string(pickle.bytes) +
                                                             " bytes, above the limit of " +
                                                             std::to_string(kMaxPickleBytes));
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(pickle.bytes));
  file_.read_at(pickle.offset, bytes);
  const PickledStateDict state = read_state_dict(bytes, name);
  std::vector<StoredTensor> tensors;
  for (const PickledTensor& tensor : state.tensors) {
    const auto storage = by_name.find(prefix + "data/" + tensor.storage);
    add_tensor(tensor, storage == by_name.end() ? nullptr : storage->second, &tensors);
  }
  if (!state.others.empty()) {
    log_warning(name + ": " + std::to_string(state.others.size()) +
                (state.others.size() == 1 ? " entry is no tensor and left out: "
                                          : " entries are no tensors and left out, the first: ") +
                printable(state.others.front()));
  }
  set_tensors(std::move(tensors));
}

void TorchFile::add_tensor(const PickledTensor& pickled, const ZipEntry* storage,
                           std::vector<StoredTensor>* tensors) {
  StoredTensor tensor;
  tensor.name = pickled.name;
  tensor.file = path().string();
  tensor.type = pickled.type;
  tensor.dtype = pickled.dtype;
  tensor.shape = pickled.shape;
  const std::string where = tensor.where();
  const uint64_t size = tensor::dtype_bytes(pickled.dtype);
  const uint64_t held = storage == nullptr ? 0 : storage->bytes;
  if (storage == nullptr && pickled.storage_elements > 0)
    throw_bad_data(where,
                   "its storage, the entry data/" + printable(pickled.storage) + ", is absent");
  if (held % size != 0 || held / size != static_cast<uint64_t>(pickled.storage_elements)) {
    throw_bad_data(where, "its storage, the entry data/" + printable(pickled.storage) + ", has " +
                              std::to_string(held) + " bytes, not " +
                              std::to_string(pickled.storage_elements) + " elements of " +
                              std::to_string(size));
  }
  // Both products are at most the storage's size.
  tensor.bytes = static_cast<uint64_t>(check_view(pickled, where)) * size;
  if (tensor.bytes > 0)
    tensor.offset = storage->offset + static_cast<uint64_t>(pickled.offset) * size;
  tensor.part = static_cast<uint32_t>(views_.size());
  views_.emplace_back(tensor.offset, static_cast<size_t>(size), pickled.shape, pickled.stride);
  tensors->push_back(std::move(tensor));
}

void TorchFile::read_range(const StoredTensor& tensor, uint64_t offset,
                           std::span<uint8_t> out) const {
  check_range(tensor, offset, out.size());
  const StridedView& view = views_.at(tensor.part);
  if (view.dense()) {
    file_.read_at(tensor.offset + offset, out);
    return;
  }
  // Elements that the range cuts are read whole.
  const uint64_t size = tensor::dtype_bytes(*tensor.dtype);
  while (!out.empty()) {
    const uint64_t element = offset / size, skip = offset % size;
    size_t done = out.size() / size * size;
    if (skip != 0 || out.size() < size) {
      uint8_t whole[sizeof(uint64_t)];
      done = std::min<size_t>(out.size(), size - skip);
      view.read(file_, element, element + 1, {whole, static_cast<size_t>(size)});
      std::memcpy(out.data(), whole + skip, done);
    } else {
      view.read(file_, element, element + done / size, out.first(done));
    }
    out = out.subspan(done);
    offset += done;
  }
}

void TorchFile::read_rows_f32(const StoredTensor& tensor, int64_t row0, int64_t row1,
                              std::span<float> out) const {
  const StridedView& view = views_.at(tensor.part);
  if (view.dense() || !readable_f32(tensor)) {
    TensorSource::read_rows_f32(tensor, row0, row1, out);
    return;
  }
  // All rows at once: a transposed view has them side by side in the file.
  check_rows(tensor, row0, row1, out.size());
  const size_t size = tensor::dtype_bytes(*tensor.dtype);
  std::vector<uint8_t> raw(out.size() * size);
  const auto cols = static_cast<uint64_t>(tensor.cols());
  view.read(file_, static_cast<uint64_t>(row0) * cols, static_cast<uint64_t>(row1) * cols, raw);
  tensor::to_f32(*tensor.dtype, raw.data(), out.size(), out.data());
}

bool begins_with_zip(const std::filesystem::path& path) {
  const File file = File::open_read(path);
  uint8_t magic[4];
  if (file.size() < sizeof magic) return false;
  file.read_at(0, magic);
  return std::memcmp(magic, "PK\3\4", sizeof magic) == 0;
}

}  // namespace loongforge::formats
