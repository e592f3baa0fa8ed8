#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/file.h"
#include "base/paths.h"
#include "ir/layout.h"
#include "ir/validate.h"

namespace loongforge::ir {
namespace {

using tensor::DType;

constexpr uint64_t kMaxBytes = uint64_t{1}
                               << 62;  // so that sums of offset and size cannot overflow
constexpr size_t kMaxRank = 8;

bool is_fp8(DType dtype) {
  return dtype == DType::kE4M3LA || dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
}

// A plain name inside the folder: no separators, not hidden, nothing a shell or a path could read
// otherwise.
bool is_plain_file_name(const std::string& name) {
  if (name.empty() || name.size() > 255 || name[0] == '.') return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

class TableCheck {
 public:
  TableCheck(const Model& model, const std::string& where) : model_(model), where_(where) {}

  void run() {
    const auto page = device_page(model_.device);
    if (!page)
      throw_bad_data(where_, "the device \"" + model_.device + "\" is unknown",
                     "known: x86_64, loongarch64");
    page_ = *page;
    if (model_.quantize != "nf4" && model_.quantize != "fp8" && model_.quantize != "bf16" &&
        model_.quantize != "fp32") {
      throw_bad_data(where_, "quantize is \"" + model_.quantize + "\", not nf4, fp8, bf16 or fp32");
    }
    if (model_.tensors.empty()) throw_bad_data(where_, "the tensor table is empty");
    for (const TensorEntry& entry : model_.tensors) {
      if (entry.name.empty()) throw_bad_data(where_, "a tensor has an empty name");
      if (!by_name_.emplace(entry.name, &entry).second) fail(entry, "stands in the table twice");
      check_shape(entry);
    }
    for (const TensorEntry& entry : model_.tensors) {
      if (entry.alias_of.empty()) {
        check_place(entry);
        check_companions(entry);
      } else {
        check_alias(entry);
      }
    }
    for (const TensorEntry& entry : model_.tensors) check_is_used(entry);
    check_overlaps();
  }

 private:
  [[noreturn]] void fail(const TensorEntry& entry, const std::string& message) const {
    throw_bad_data(where_, "tensor \"" + entry.name + "\" " + message);
  }

  void check_shape(const TensorEntry& entry) const {
    if (entry.shape.size() > kMaxRank) fail(entry, "has a rank above " + std::to_string(kMaxRank));
    uint64_t elements = 1;
    for (int64_t extent : entry.shape) {
      if (extent < 1 || elements > kMaxBytes / 64 / static_cast<uint64_t>(extent)) {
        fail(entry, "has a shape that is not possible");
      }
      elements *= static_cast<uint64_t>(extent);
    }
    // Padding makes at most 32 bytes of a byte, so rows * stride stays below 2^62 after the check
    // above.
  }

  void check_place(const TensorEntry& entry) const {
    if (!is_plain_file_name(entry.file))
      fail(entry, "names the file \"" + entry.file + "\", which is no plain file name");
    if (entry.offset % kTensorAlignment != 0)
      fail(entry, "has an offset that is no multiple of 128");
    if (entry.offset < page_) fail(entry, "has an offset inside the file's header");
    const uint64_t bytes = static_cast<uint64_t>(entry.rows()) * entry.row_stride();
    if (entry.bytes != bytes) {
      fail(entry, "has " + std::to_string(entry.bytes) + " bytes, its shape and dtype need " +
                      std::to_string(bytes));
    }
    if (entry.offset > kMaxBytes) fail(entry, "has an offset that is not possible");
  }

  const TensorEntry& companion(const TensorEntry& entry, const std::string& name,
                               std::string_view role) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      fail(entry, "names the " + std::string(role) + " companion \"" + name +
                      "\", which the table does not hold");
    }
    const TensorEntry& other = *found->second;
    if (!other.alias_of.empty() || !other.crc.empty() || !other.scale.empty()) {
      fail(entry, "names \"" + name + "\" as its companion, which is no companion");
    }
    if (!companions_.insert(other.name).second) fail(other, "is the companion of two tensors");
    return other;
  }

  void check_companions(const TensorEntry& entry) {
    if (is_fp8(entry.dtype) && !entry.crc.empty()) {  // without a crc it must be a companion itself
      if (entry.scale.empty()) fail(entry, "is FP8 and lacks its scale companion");
      if (entry.block_rows < 1 || entry.block_cols < 1)
        fail(entry, "is FP8 and lacks its scale_block");
      const TensorEntry& scale = companion(entry, entry.scale, "scale");
      const std::vector<int64_t> shape = {1 + (entry.rows() - 1) / entry.block_rows,
                                          1 + (entry.cols() - 1) / entry.block_cols};
      if (scale.shape != shape)
        fail(scale, "has a shape that does not fit the scale blocks of \"" + entry.name + "\"");
      if (scale.dtype != DType::kF32 && scale.dtype != DType::kBF16 && scale.dtype != DType::kF16) {
        fail(scale, "has a dtype that scales do not have");
      }
      if (!entry.source_scale.name.empty()) check_source_scale(entry, scale);
      for (const std::string& name : entry.companions) companion(entry, name, "carried");
    } else if (entry.dtype == DType::kNf4 && !entry.crc.empty()) {
      check_nf4(entry);
    } else if (!entry.source_scale.name.empty() || !entry.companions.empty()) {
      fail(entry, "carries parts of an FP8 checkpoint but is not FP8");
    } else if (!entry.scale.empty() || entry.block_rows != 0 || entry.block_cols != 0) {
      fail(entry, "has a scale but is neither FP8 nor NF4");
    }
    if (!entry.crc.empty()) {
      const TensorEntry& crc = companion(entry, entry.crc, "crc");
      if (crc.dtype != DType::kU32 ||
          crc.shape != std::vector<int64_t>{ceil_div(entry.rows(), kCrcRows)}) {
        fail(crc, "is not one U32 for each 128 rows of \"" + entry.name + "\"");
      }
    }
  }

  void check_nf4(const TensorEntry& entry) {
    if (entry.shape.size() != 2) fail(entry, "is NF4 and no matrix");
    if (entry.scale.empty()) fail(entry, "is NF4 and lacks its absmax companion");
    if (entry.block_rows != 1 || entry.block_cols != kNf4Block)
      fail(entry, "is NF4 and has a scale_block other than [1, 64]");
    if (!entry.source_scale.name.empty() || !entry.companions.empty())
      fail(entry, "carries parts of an FP8 checkpoint but is not FP8");
    const TensorEntry& absmax = companion(entry, entry.scale, "absmax");
    if (absmax.dtype != DType::kF32 ||
        absmax.shape != std::vector<int64_t>{entry.rows(), 1 + (entry.cols() - 1) / kNf4Block}) {
      fail(absmax, "is not one F32 for each 64 elements of a row of \"" + entry.name + "\"");
    }
  }

  // Another spelling of the scale's shape: as many elements.
  void check_source_scale(const TensorEntry& entry, const TensorEntry& scale) const {
    const std::vector<int64_t>& shape = entry.source_scale.shape;
    const int64_t want = scale.shape[0] * scale.shape[1];
    int64_t elements = 1;
    for (int64_t extent : shape) {
      if (extent > want / elements) elements = want + 1;  // more, and no overflow
      if (elements > want) break;
      elements *= extent;
    }
    if (shape.size() > kMaxRank || elements != want) {
      fail(entry, "has a source_scale of another size than its scales");
    }
  }

  void check_alias(const TensorEntry& entry) const {
    const auto found = by_name_.find(entry.alias_of);
    if (found == by_name_.end())
      fail(entry, "is an alias of \"" + entry.alias_of + "\", which the table does not hold");
    const TensorEntry& target = *found->second;
    if (!target.alias_of.empty())
      fail(entry, "is an alias of \"" + entry.alias_of + "\", which is an alias itself");
    if (target.dtype != entry.dtype || target.shape != entry.shape) {
      fail(entry, "is an alias of \"" + entry.alias_of + "\" but has another dtype or shape");
    }
  }

  // Every stored tensor is verified by a crc companion, or is a companion and has its checksum in
  // the table.
  void check_is_used(const TensorEntry& entry) const {
    if (entry.alias_of.empty() && entry.crc.empty() && !companions_.contains(entry.name)) {
      fail(entry, "lacks its crc companion");
    }
  }

  void check_overlaps() const {
    std::map<std::string_view, std::vector<const TensorEntry*>> files;
    for (const TensorEntry& entry : model_.tensors) {
      if (entry.alias_of.empty()) files[entry.file].push_back(&entry);
    }
    for (auto& [file, entries] : files) {
      std::sort(entries.begin(), entries.end(),
                [](const auto* a, const auto* b) { return a->offset < b->offset; });
      for (size_t i = 1; i < entries.size(); ++i) {
        if (entries[i - 1]->offset + entries[i - 1]->bytes > entries[i]->offset) {
          fail(*entries[i], "overlaps the tensor \"" + entries[i - 1]->name + "\"");
        }
      }
    }
  }

  const Model& model_;
  const std::string& where_;
  uint64_t page_ = 0;
  std::unordered_map<std::string_view, const TensorEntry*> by_name_;
  std::unordered_set<std::string_view> companions_;
};

uint64_t little_endian(const uint8_t* bytes, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i) value |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  return value;
}

}  // namespace

void validate_table(const Model& model, const std::string& where) {
  TableCheck(model, where).run();
}

void validate_files(const Model& model, const std::filesystem::path& folder) {
  std::map<std::string, uint64_t> ends;
  for (const TensorEntry& entry : model.tensors) {
    if (entry.alias_of.empty())
      ends[entry.file] = std::max(ends[entry.file], entry.offset + entry.bytes);
  }
  for (const auto& [name, end] : ends) {
    if (!path_exists(folder / name))
      throw_bad_data((folder / name).string(), "does not exist, but the tensor table names it");
    const File file = File::open_read(folder / name);
    const std::string where = file.path().string();
    const uint64_t size = file.size(), expected = round_up(end, kTensorAlignment);
    if (size != expected) {
      throw_bad_data(where,
                     "has " + std::to_string(size) + " bytes, the tensor table needs " +
                         std::to_string(expected),
                     "the folder is incomplete or mixed: convert or copy it again");
    }
    uint8_t header[kFileHeaderBytes];
    file.read_at(0, header);
    if (std::memcmp(header, kFileMagic.data(), kFileMagic.size()) != 0)
      throw_bad_data(where, "is no LoongIR weight file");
    if (little_endian(header + 8, 4) != static_cast<uint64_t>(model.version_major)) {
      throw_bad_data(where, "has another format version than " + std::string(kModelFile));
    }
    if (little_endian(header + 16, 8) != *device_page(model.device)) {
      throw_bad_data(where, "does not begin its data where the device " + model.device + " has it");
    }
  }
}

}  // namespace loongforge::ir
