#include "formats/gguf_writer.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <unordered_set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "formats/gguf_types.h"
#include "support/printable.h"
#include "tensor/convert.h"

namespace loongforge::formats {

using support::printable;

namespace {

constexpr uint64_t kAlignment = 32;   // the format's default: no key is needed
constexpr size_t kMaxNameBytes = 63;  // llama.cpp keeps names in 64 bytes with a final zero
constexpr size_t kMaxDims = 4;
enum ValueType : uint32_t {
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11
};

uint64_t padded(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The header's bytes.
class Header {
 public:
  explicit Header(std::string where) : where_(std::move(where)) {}

  template <class T>
  void number(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<uint64_t>(value.size()));
    bytes_.append(value);
  }
  void key(const std::string& key, const GgufValue& value) {
    text(key);
    const std::string where = where_ + ": " + printable(key);
    std::visit([&](const auto& held) { put(held, where); }, value.value);
  }
  std::string& bytes() { return bytes_; }

 private:
  void put(bool value, const std::string&) {
    number<uint32_t>(kBool);
    number(static_cast<uint8_t>(value));
  }
  void put(int64_t value, const std::string&) {
    if (value >= 0 && value <= std::numeric_limits<uint32_t>::max()) {
      number<uint32_t>(kU32);
      number(static_cast<uint32_t>(value));
    } else if (value < 0 && value >= std::numeric_limits<int32_t>::min()) {
      number<uint32_t>(kI32);
      number(static_cast<int32_t>(value));
    } else {
      number<uint32_t>(kI64);
      number(value);
    }
  }
  void put(uint64_t value, const std::string&) {
    number<uint32_t>(kU64);
    number(value);
  }
  void put(double value, const std::string&) {
    number<uint32_t>(kF32);
    number(static_cast<float>(value));
  }
  void put(const std::string& value, const std::string&) {
    number<uint32_t>(kString);
    text(value);
  }
  void array(uint32_t type, size_t count) {
    number<uint32_t>(kArray);
    number(type);
    number(static_cast<uint64_t>(count));
  }
  void put(const std::vector<bool>& values, const std::string&) {
    array(kBool, values.size());
    for (const bool value : values) number(static_cast<uint8_t>(value));
  }
  void put(const std::vector<int64_t>& values, const std::string& where) {
    array(kI32, values.size());
    for (const int64_t value : values) {
      if (value < std::numeric_limits<int32_t>::min() ||
          value > std::numeric_limits<int32_t>::max())
        throw_bad_data(where, std::to_string(value) + " does not fit an INT32");
      number(static_cast<int32_t>(value));
    }
  }
  void put(const std::vector<double>& values, const std::string&) {
    array(kF32, values.size());
    for (const double value : values) number(static_cast<float>(value));
  }
  void put(const std::vector<std::string>& values, const std::string&) {
    array(kString, values.size());
    for (const std::string& value : values) text(value);
  }
  void put(const GgufValue::Nested&, const std::string& where) {
    throw_bad_data(where, "arrays of arrays are not written");
  }

  std::string where_, bytes_;
};

}  // namespace

const char* gguf_out_name(GgufOut type) noexcept {
  return find_gguf_type(static_cast<uint32_t>(type))->name;
}

uint64_t NewGgufTensor::bytes() const {
  const GgufType& as = *find_gguf_type(static_cast<uint32_t>(type));
  uint64_t elements = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(extent), &elements))
      throw_bad_data(printable(name), "its size overflows");
  }
  const uint64_t row = shape.empty() ? 1 : static_cast<uint64_t>(shape.back());
  if (row % as.block_elements != 0) {
    throw_bad_data(printable(name),
                   "rows of " + std::to_string(row) + " are no whole blocks of " + as.name);
  }
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements / as.block_elements, uint64_t{as.block_bytes}, &bytes))
    throw_bad_data(printable(name), "its size overflows");
  return bytes;
}

bool quantise_q8_0(const float* in, int64_t blocks, uint8_t* out) noexcept {
  bool sound = true;
  for (int64_t b = 0; b < blocks; ++b, in += kQ8Block, out += 2 + kQ8Block) {
    float amax = 0.0f;
    bool numbers = true;
    for (int64_t i = 0; i < kQ8Block; ++i) {
      amax = std::fmax(amax, std::fabs(in[i]));
      numbers = numbers && !std::isnan(in[i]);
    }
    // A scale whose inverse is beyond fp32 is 0 as f16 too: all codes are 0.
    const float scale = amax / 127.0f, inverse = scale < 0x1p-126f ? 0.0f : 1.0f / scale;
    const uint16_t stored = tensor::f32_to_f16_bits(scale);
    if (!numbers || !std::isfinite(tensor::f16_bits_to_f32(stored))) {
      sound = false;
      continue;
    }
    std::memcpy(out, &stored, sizeof stored);
    for (int64_t i = 0; i < kQ8Block; ++i)
      out[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(in[i] * inverse)));
  }
  return sound;
}

struct GgufWriter::Impl {
  explicit Impl(const std::filesystem::path& path) : out(path) {}

  // Closes the tensors that are complete, with their padding.
  void advance() {
    static constexpr uint8_t kZeros[kAlignment] = {};
    while (current < tensors.size() && written == tensors[current].bytes()) {
      out.file().write({kZeros, static_cast<size_t>(padded(written) - written)});
      written = 0;
      ++current;
    }
  }

  AtomicFile out;
  std::vector<NewGgufTensor> tensors;
  size_t current = 0;    // the tensor under way
  uint64_t written = 0;  // of it
  uint64_t file_bytes = 0;
};

GgufWriter::GgufWriter(const std::filesystem::path& path, const GgufKeys& keys,
                       std::vector<NewGgufTensor> tensors) {
  const std::string where = path.string();
  Header header(where);
  header.bytes() = "GGUF";
  header.number<uint32_t>(3);
  header.number(static_cast<uint64_t>(tensors.size()));
  header.number(static_cast<uint64_t>(keys.size()));
  std::unordered_set<std::string_view> seen;
  for (const auto& [key, value] : keys) {
    if (!seen.insert(key).second)
      throw_bad_data(where + ": " + printable(key), "the key stands twice");
    header.key(key, value);
  }
  seen.clear();
  uint64_t offset = 0;
  for (const NewGgufTensor& tensor : tensors) {
    const std::string tensor_where = where + ": " + printable(tensor.name);
    if (tensor.name.empty() || tensor.name.size() > kMaxNameBytes) {
      throw_bad_data(tensor_where, "the name has " + std::to_string(tensor.name.size()) +
                                       " bytes, GGUF files allow 1 to " +
                                       std::to_string(kMaxNameBytes));
    }
    if (!seen.insert(tensor.name).second)
      throw_bad_data(tensor_where, "stands twice among the tensors to write");
    if (tensor.shape.size() > kMaxDims)
      throw_bad_data(tensor_where, "has more than four dimensions");
    header.text(tensor.name);
    header.number(static_cast<uint32_t>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i-- > 0;)
      header.number(static_cast<uint64_t>(tensor.shape[i]));
    header.number(static_cast<uint32_t>(tensor.type));
    header.number(offset);
    if (tensor.bytes() > std::numeric_limits<uint64_t>::max() / 4 ||
        __builtin_add_overflow(offset, padded(tensor.bytes()), &offset))
      throw_bad_data(tensor_where, "the file's size overflows");
  }
  std::string& bytes = header.bytes();
  bytes.resize(padded(bytes.size()), '\0');
  impl_ = std::make_unique<Impl>(path);
  impl_->file_bytes = bytes.size() + offset;
  impl_->tensors = std::move(tensors);
  impl_->out.file().write({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  impl_->advance();  // past tensors without elements
}

GgufWriter::~GgufWriter() = default;

void GgufWriter::write(std::string_view name, std::span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  const std::string where = impl_->out.final_path().string() + ": " + printable(name);
  if (impl_->current == impl_->tensors.size() || impl_->tensors[impl_->current].name != name)
    throw_failed(where, "is not the tensor whose bytes are due");
  if (bytes.size() > impl_->tensors[impl_->current].bytes() - impl_->written)
    throw_failed(where, "more bytes were written than its shape takes");
  impl_->out.file().write(bytes);
  impl_->written += bytes.size();
  impl_->advance();
}

void GgufWriter::finish() {
  if (impl_->current != impl_->tensors.size()) {
    throw_failed(
        impl_->out.final_path().string() + ": " + printable(impl_->tensors[impl_->current].name),
        "some of its bytes were not written");
  }
  impl_->out.commit();
}

uint64_t GgufWriter::file_bytes() const noexcept { return impl_->file_bytes; }

}  // namespace loongforge::formats
