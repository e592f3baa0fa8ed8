#include "formats/gguf.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "formats/gguf_types.h"
#include "support/printable.h"

namespace loongforge::formats {

using support::printable;

namespace {

constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxNameBytes = 64;
constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kMaxArray =
    uint64_t{1} << 26;  // far above any vocabulary; bounds what one count can make us allocate
constexpr int kMaxArrayDepth = 4;

enum ValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

// Smallest stored size of a value of each type, in the order of ValueType.
constexpr uint64_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

// Reads the file from its start through a window; every size is checked against what is left of the
// file.
class Cursor {
 public:
  explicit Cursor(const File& file) : file_(file), size_(file.size()), buffer_(size_t{1} << 18) {}

  uint64_t position() const { return position_; }
  uint64_t size() const { return size_; }
  uint64_t left() const { return size_ - position_; }

  [[noreturn]] void fail(const std::string& what, std::string hint = {}) const {
    throw_bad_data(file_.path().string() + (context_.empty() ? "" : ": " + context_), what,
                   std::move(hint));
  }
  // What is being read, for errors: a metadata key or a tensor.
  void set_context(std::string context) { context_ = std::move(context); }

  void read(void* out, uint64_t bytes) {
    if (bytes > left()) {
      fail("the header ends early: " + std::to_string(bytes) + " bytes are needed at offset " +
               std::to_string(position_) + ", but the file has " + std::to_string(size_),
           "the file is truncated or no GGUF file; fetch it again");
    }
    auto* to = static_cast<uint8_t*>(out);
    while (bytes > 0) {
      if (position_ < window_ || position_ >= window_ + filled_) {
        window_ = position_;
        filled_ = std::min<uint64_t>(buffer_.size(), left());
        file_.read_at(window_, {buffer_.data(), static_cast<size_t>(filled_)});
      }
      const uint64_t n = std::min(bytes, window_ + filled_ - position_);
      std::memcpy(to, buffer_.data() + (position_ - window_), n);
      to += n;
      position_ += n;
      bytes -= n;
    }
  }

  template <class T>
  T number() {
    T value;
    read(&value, sizeof value);
    return value;
  }

  std::string string(uint64_t most) {
    const auto length = number<uint64_t>();
    if (length > most || length > left()) {
      fail("a text's length is " + std::to_string(length) + " bytes, above " +
           std::to_string(std::min(most, left())));
    }
    std::string out(length, '\0');
    read(out.data(), length);
    return out;
  }

 private:
  const File& file_;
  uint64_t size_, position_ = 0, window_ = 0, filled_ = 0;
  std::vector<uint8_t> buffer_;
  std::string context_;
};

bool read_bool(Cursor& in) {
  const auto byte = in.number<uint8_t>();
  if (byte > 1) in.fail("a bool has the value " + std::to_string(byte));
  return byte == 1;
}

// An integer type of at most 64 bits; u64 above int64_t only where the caller takes it.
int64_t read_integer(Cursor& in, uint32_t type) {
  switch (type) {
    case kU8:
      return in.number<uint8_t>();
    case kI8:
      return in.number<int8_t>();
    case kU16:
      return in.number<uint16_t>();
    case kI16:
      return in.number<int16_t>();
    case kU32:
      return in.number<uint32_t>();
    case kI32:
      return in.number<int32_t>();
    case kI64:
      return in.number<int64_t>();
    default: {
      const auto value = in.number<uint64_t>();
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        in.fail(std::to_string(value) + " is too large");
      return static_cast<int64_t>(value);
    }
  }
}

void check_value_type(const Cursor& in, uint32_t type) {
  if (type > kF64) in.fail("unknown value type " + std::to_string(type));
}

GgufValue read_array(Cursor& in, int depth);

GgufValue read_value(Cursor& in, uint32_t type) {
  switch (type) {
    case kF32:
      return {static_cast<double>(in.number<float>())};
    case kF64:
      return {in.number<double>()};
    case kBool:
      return {read_bool(in)};
    case kString:
      return {in.string(in.left())};
    case kArray:
      return read_array(in, 1);
    case kU64: {
      const auto value = in.number<uint64_t>();
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return {value};
      return {static_cast<int64_t>(value)};
    }
    default:
      return {read_integer(in, type)};
  }
}

template <class T, class Read>
GgufValue read_items(uint64_t count, Read read) {
  std::vector<T> items;
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i) items.push_back(read());
  return {std::move(items)};
}

GgufValue read_array(Cursor& in, int depth) {
  const auto type = in.number<uint32_t>();
  const auto count = in.number<uint64_t>();
  check_value_type(in, type);
  if (depth > kMaxArrayDepth) in.fail("arrays are nested too deep");
  if (count > kMaxArray || count > in.left() / kValueBytes[type]) {
    in.fail("an array claims " + std::to_string(count) + " values, more than the file can hold",
            "the file is damaged; fetch it again");
  }
  switch (type) {
    case kF32:
      return read_items<double>(count, [&] { return static_cast<double>(in.number<float>()); });
    case kF64:
      return read_items<double>(count, [&] { return in.number<double>(); });
    case kBool:
      return read_items<bool>(count, [&] { return read_bool(in); });
    case kString:
      return read_items<std::string>(count, [&] { return in.string(in.left()); });
    case kArray:
      return read_items<GgufValue>(count, [&] { return read_array(in, depth + 1); });
    default:
      return read_items<int64_t>(count, [&] { return read_integer(in, type); });
  }
}

// One tensor's description; offset is still relative to the data.
StoredTensor read_tensor_info(Cursor& in, const std::string& file) {
  StoredTensor tensor;
  tensor.file = file;
  tensor.name = in.string(kMaxNameBytes);
  in.set_context(printable(tensor.name));
  const auto dims = in.number<uint32_t>();
  if (dims > kMaxDims)
    in.fail("has " + std::to_string(dims) + " dimensions, more than " + std::to_string(kMaxDims));
  uint64_t elements = 1;
  for (uint32_t i = 0; i < dims; ++i) {
    const auto d = in.number<uint64_t>();
    if (d > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
        __builtin_mul_overflow(elements, d, &elements) ||
        elements > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      in.fail("its number of elements overflows");
    }
    tensor.shape.insert(tensor.shape.begin(),
                        static_cast<int64_t>(d));  // the file has the fastest dimension first
  }
  const auto id = in.number<uint32_t>();
  const GgufType* type = find_gguf_type(id);
  if (type == nullptr) in.fail("unknown tensor type " + std::to_string(id));
  tensor.type = type->name;
  tensor.dtype = type->dtype;
  tensor.part = id;
  const uint64_t row = tensor.shape.empty() ? 1 : static_cast<uint64_t>(tensor.shape.back());
  if (row % type->block_elements != 0) {
    in.fail("its last dimension, " + std::to_string(row) + ", is no multiple of the block of " +
            type->name + ", " + std::to_string(type->block_elements));
  }
  if (__builtin_mul_overflow(elements / type->block_elements, uint64_t{type->block_bytes},
                             &tensor.bytes)) {
    in.fail("its size overflows");
  }
  tensor.offset = in.number<uint64_t>();
  return tensor;
}

// Ranges inside the file and apart from each other; makes the offsets absolute.
void place_tensors(std::vector<StoredTensor>& tensors, uint64_t header_end, uint64_t alignment,
                   uint64_t file_size) {
  if (tensors.empty()) return;
  const uint64_t data = (header_end + alignment - 1) / alignment * alignment;
  for (StoredTensor& tensor : tensors) {
    if (tensor.offset % alignment != 0) {
      throw_bad_data(tensor.where(), "its offset " + std::to_string(tensor.offset) +
                                         " is no multiple of the alignment, " +
                                         std::to_string(alignment));
    }
    if (data > file_size || tensor.offset > file_size - data ||
        tensor.bytes > file_size - data - tensor.offset) {
      throw_bad_data(tensor.where(),
                     std::to_string(tensor.bytes) + " bytes of data at offset " +
                         std::to_string(tensor.offset) + " end beyond the file, which has " +
                         std::to_string(file_size) + " bytes",
                     "the file is truncated; fetch it again");
    }
    tensor.offset += data;
  }
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return tensors[a].offset < tensors[b].offset; });
  const StoredTensor* before = nullptr;  // the last one with data
  for (size_t i : order) {
    const StoredTensor& tensor = tensors[i];
    if (tensor.bytes == 0) continue;
    if (before != nullptr && tensor.offset < before->offset + before->bytes) {
      throw_bad_data(tensor.where(), "its data overlaps that of " + printable(before->name));
    }
    before = &tensor;
  }
}

}  // namespace

const char* GgufValue::type_name() const {
  static constexpr const char* kNames[] = {"bool",
                                           "integer",
                                           "integer",
                                           "float",
                                           "string",
                                           "array of bools",
                                           "array of integers",
                                           "array of floats",
                                           "array of strings",
                                           "array of arrays"};
  return kNames[value.index()];
}

GgufFile::GgufFile(const std::filesystem::path& path)
    : TensorSource(path), file_(File::open_read(path)) {
  parse();
}

void GgufFile::parse() {
  Cursor in(file_);
  char magic[4];
  in.read(magic, sizeof magic);
  if (std::memcmp(magic, "GGUF", 4) != 0)
    in.fail("does not begin with GGUF", "this is no GGUF file");
  version_ = in.number<uint32_t>();
  if (version_ != 2 && version_ != 3) {
    const bool swapped = version_ != 0 && (version_ & 0xffffu) == 0;
    in.fail(swapped ? std::string("is a big-endian GGUF file")
                    : "has GGUF version " + std::to_string(version_),
            "versions 2 and 3, little-endian, can be read");
  }
  const auto tensor_count = in.number<uint64_t>();
  const auto entry_count = in.number<uint64_t>();
  constexpr uint64_t kMinEntry = 8 + 4 + 1, kMinTensor = 8 + 4 + 4 + 8;
  if (entry_count > in.left() / kMinEntry || tensor_count > in.left() / kMinTensor) {
    in.fail("claims " + std::to_string(entry_count) + " metadata entries and " +
                std::to_string(tensor_count) + " tensors, more than its " +
                std::to_string(in.size()) + " bytes can hold",
            "the file is damaged; fetch it again");
  }
  for (uint64_t i = 0; i < entry_count; ++i) {
    in.set_context("metadata entry " + std::to_string(i));
    std::string key = in.string(kMaxKeyBytes);
    in.set_context(printable(key));
    const auto type = in.number<uint32_t>();
    check_value_type(in, type);
    entries_.emplace_back(std::move(key), read_value(in, type));
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!by_key_.emplace(entries_[i].first, i).second) {
      throw_bad_data(path().string() + ": " + printable(entries_[i].first),
                     "the metadata key stands twice");
    }
  }
  const int64_t alignment = get_int("general.alignment").value_or(32);
  if (alignment < 8 || alignment % 8 != 0 || alignment > (int64_t{1} << 30)) {
    throw_bad_data(path().string() + ": general.alignment",
                   "is " + std::to_string(alignment) + ", no multiple of 8");
  }
  alignment_ = static_cast<uint64_t>(alignment);
  std::vector<StoredTensor> tensors;
  for (uint64_t i = 0; i < tensor_count; ++i) {
    in.set_context("tensor " + std::to_string(i));
    tensors.push_back(read_tensor_info(in, path().string()));
  }
  place_tensors(tensors, in.position(), alignment_, in.size());
  std::unordered_map<std::string_view, size_t> seen;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!seen.emplace(tensors[i].name, i).second)
      throw_bad_data(tensors[i].where(), "the tensor's name stands twice");
  }
  set_tensors(std::move(tensors));
}

void GgufFile::read_range(const StoredTensor& tensor, uint64_t offset,
                          std::span<uint8_t> out) const {
  check_range(tensor, offset, out.size());
  file_.read_at(tensor.offset + offset, out);
}

bool GgufFile::readable_f32(const StoredTensor& tensor) const {
  const GgufType* type = find_gguf_type(tensor.part);
  return type != nullptr && type->dequantise != nullptr;
}

void GgufFile::read_rows_f32(const StoredTensor& tensor, int64_t row0, int64_t row1,
                             std::span<float> out) const {
  check_rows(tensor, row0, row1, out.size());
  if (!readable_f32(tensor)) throw_unreadable(tensor);
  const GgufType& type = *find_gguf_type(tensor.part);
  // Rows are whole blocks, so a range of rows is a range of blocks.
  uint64_t offset = static_cast<uint64_t>(row0) * row_bytes(tensor);
  uint64_t blocks = out.size() / type.block_elements;
  const uint64_t per_chunk = std::min<uint64_t>(blocks, (uint64_t{1} << 18) / type.block_bytes);
  std::vector<uint8_t> chunk(per_chunk * type.block_bytes);
  float* to = out.data();
  while (blocks > 0) {
    const uint64_t n = std::min(blocks, per_chunk);
    read_range(tensor, offset, {chunk.data(), static_cast<size_t>(n * type.block_bytes)});
    type.dequantise(chunk.data(), static_cast<int64_t>(n), to);
    to += n * type.block_elements;
    offset += n * type.block_bytes;
    blocks -= n;
  }
}

}  // namespace loongforge::formats
