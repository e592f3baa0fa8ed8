#include "ir/reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

#include "base/checksum.h"
#include "base/error.h"
#include "base/paths.h"
#include "ir/layout.h"
#include "ir/model_json.h"
#include "ir/validate.h"
#include "tensor/convert.h"

namespace loongforge::ir {
namespace {

// The smallest block scale exponent that the fast path takes: products of smaller ones could be
// subnormal (DESIGN 4).
constexpr int kMinScaleExponent = -41;

// Companions up to this size are kept once they were read: checksums and the scales of FP8 blocks.
// An NF4 tensor's absmax is an eighth of it and needed once.
constexpr uint64_t kKeptBytes = 1 << 16;

uint32_t load_u32(const uint8_t* bytes) {
  return uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 |
         uint32_t{bytes[3]} << 24;
}

}  // namespace

struct Reader::Impl {
  std::filesystem::path folder;
  Model model;
  std::map<std::string, File, std::less<>> files;
  std::unordered_map<std::string_view, const TensorEntry*> by_name;  // views into model
  mutable std::mutex mutex;
  mutable std::unordered_map<std::string, std::vector<uint8_t>>
      companions;  // verified bytes, small

  std::string where(const TensorEntry& entry) const {
    return (folder / entry.file).string() + ": " + entry.name;
  }

  const TensorEntry& stored(std::string_view name) const {
    auto found = by_name.find(name);
    if (found != by_name.end() && !found->second->alias_of.empty())
      found = by_name.find(found->second->alias_of);
    if (found == by_name.end())
      throw_bad_data(folder.string() + ": " + std::string(name), "the model holds no such tensor");
    return *found->second;
  }

  std::vector<uint8_t> read_companion(const TensorEntry& entry) const {
    std::vector<uint8_t> bytes(entry.bytes);
    const File& file = files.find(entry.file)->second;
    file.read_at(entry.offset, bytes);
    if (crc32c(bytes) != entry.crc32c) {
      throw_bad_data(where(entry), "is damaged: its CRC32C is not the one of the tensor table",
                     "convert or copy the model again");
    }
    if (entry.bytes > kKeptBytes) file.drop_cache(entry.offset, bytes.size());
    return bytes;
  }

  // A companion's bytes, read and verified once. Nodes of an unordered_map do not move, so the
  // reference stays valid.
  const std::vector<uint8_t>& companion(const TensorEntry& entry) const {
    const std::lock_guard lock(mutex);
    const auto found = companions.find(entry.name);
    if (found != companions.end()) return found->second;
    return companions.emplace(entry.name, read_companion(entry)).first->second;
  }

  void verify(const TensorEntry& entry, int64_t row0, std::span<const uint8_t> rows) const {
    const std::vector<uint8_t>& sums = companion(stored(entry.crc));
    const uint64_t group = static_cast<uint64_t>(kCrcRows) * entry.row_stride();
    for (uint64_t at = 0; at < rows.size(); at += group) {
      const int64_t index = row0 / kCrcRows + static_cast<int64_t>(at / group);
      const uint32_t expected = load_u32(sums.data() + 4 * index);
      if (crc32c(rows.subspan(at, std::min<uint64_t>(group, rows.size() - at))) != expected) {
        throw_bad_data(where(entry),
                       "is damaged: rows " + std::to_string(index * kCrcRows) + " to " +
                           std::to_string(std::min(entry.rows(), (index + 1) * kCrcRows) - 1) +
                           " do not have their CRC32C",
                       "convert or copy the model again");
      }
    }
  }
};

Reader::Reader(const std::filesystem::path& folder) : impl_(std::make_unique<Impl>()) {
  const std::filesystem::path description = folder / kModelFile;
  if (!folder_exists(folder) || !path_exists(description)) {
    throw_no_input(folder.string(), "is no LoongIR folder: it has no " + std::string(kModelFile),
                   "make one with loongforge convert");
  }
  impl_->folder = folder;
  impl_->model = model_from_text(read_text(description), description.string());
  validate_table(impl_->model, description.string());
  validate_graph(impl_->model, description.string());
  validate_files(impl_->model, folder);
  for (const TensorEntry& entry : impl_->model.tensors) {
    impl_->by_name.emplace(entry.name, &entry);
    if (entry.alias_of.empty() && impl_->files.find(entry.file) == impl_->files.end()) {
      impl_->files.emplace(entry.file, File::open_read(folder / entry.file));
    }
  }
}

Reader::Reader(Reader&&) noexcept = default;
Reader::~Reader() = default;

const std::filesystem::path& Reader::folder() const { return impl_->folder; }
const Model& Reader::model() const { return impl_->model; }

void Reader::read_rows(const TensorEntry& tensor, int64_t row0, int64_t row1,
                       std::span<uint8_t> out) const {
  const TensorEntry& entry = impl_->stored(tensor.name);
  const int64_t rows = entry.rows();
  const uint64_t stride = entry.row_stride();
  if (row0 < 0 || row0 > row1 || row1 > rows || row0 % kCrcRows != 0 ||
      (row1 % kCrcRows != 0 && row1 != rows) ||
      out.size() != static_cast<uint64_t>(row1 - row0) * stride) {
    throw_failed(impl_->where(entry), "rows " + std::to_string(row0) + " to " +
                                          std::to_string(row1) + " cannot be read so");
  }
  if (row0 == row1) return;
  if (entry.crc.empty()) {
    const bool large = entry.bytes > kKeptBytes;
    const std::vector<uint8_t> once = large ? impl_->read_companion(entry) : std::vector<uint8_t>();
    const std::vector<uint8_t>& bytes = large ? once : impl_->companion(entry);
    std::memcpy(out.data(), bytes.data() + static_cast<uint64_t>(row0) * stride, out.size());
    return;
  }
  const File& file = impl_->files.find(entry.file)->second;
  const uint64_t offset = entry.offset + static_cast<uint64_t>(row0) * stride;
  file.read_at(offset, out);
  impl_->verify(entry, row0, out);
  file.drop_cache(offset, out.size());
}

std::vector<float> Reader::read_f32(std::string_view name) const {
  const TensorEntry& entry = impl_->stored(name);
  std::vector<uint8_t> bytes(entry.bytes);
  read_rows(entry, 0, entry.rows(), bytes);
  if (!tensor::converts_to_f32(entry.dtype)) {
    throw_bad_data(impl_->where(entry), "is " + std::string(tensor::dtype_name(entry.dtype)) +
                                            ", which has no fp32 values of its own");
  }
  const int64_t rows = entry.rows();
  const size_t cols = static_cast<size_t>(entry.cols());
  std::vector<float> values(static_cast<size_t>(rows) * cols);
  for (int64_t r = 0; r < rows; ++r) {
    tensor::to_f32(entry.dtype, bytes.data() + static_cast<uint64_t>(r) * entry.row_stride(), cols,
                   values.data() + static_cast<size_t>(r) * cols);
  }
  return values;
}

bool Reader::read_scale_exponents(const TensorEntry& tensor, std::vector<int8_t>* exps) const {
  const TensorEntry& entry = impl_->stored(tensor.name);
  if (entry.scale.empty()) throw_failed(impl_->where(entry), "has no scales");
  const std::vector<float> scales = read_f32(entry.scale);
  exps->resize(scales.size());
  for (size_t i = 0; i < scales.size(); ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(scales[i]);
    const int exponent = static_cast<int>(bits >> 23) - 127;
    if ((bits & 0x807FFFFFu) != 0 || exponent < kMinScaleExponent || exponent > 127) return false;
    (*exps)[i] = static_cast<int8_t>(exponent);
  }
  return true;
}

}  // namespace loongforge::ir
