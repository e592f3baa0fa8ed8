// Making small Hugging Face checkpoints and GGUF files in tests, and comparing checkpoints tensor
// by tensor.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/sharded.h"
#include "formats/tensor_source.h"
#include "support/bytes.h"
#include "support/data.h"
#include "support/json.h"

namespace loongforge::test {

inline std::filesystem::path model_dir(const std::string& family) {
  return data_dir() / "models" / family;
}

inline std::vector<uint8_t> stored_bytes(const formats::TensorSource& source,
                                         const std::string& name) {
  const formats::StoredTensor& tensor = source.at(name);
  std::vector<uint8_t> bytes(tensor.bytes);
  source.read_range(tensor, 0, bytes);
  return bytes;
}

// The same tensors with the same dtype, shape and bytes.
inline void check_same_checkpoint(const formats::TensorSource& a, const formats::TensorSource& b) {
  CHECK(a.tensors().size() == b.tensors().size());
  for (const formats::StoredTensor& tensor : a.tensors()) {
    const std::string& name = tensor.name;
    CAPTURE(name);
    const formats::StoredTensor* other = b.find(name);
    REQUIRE(other != nullptr);
    CHECK(other->dtype == tensor.dtype);
    CHECK(other->shape == tensor.shape);
    CHECK(stored_bytes(a, name) == stored_bytes(b, name));
  }
}

struct MadeTensor {
  std::string name;
  tensor::DType dtype;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

// All tensors of a checkpoint, to be changed and written again.
inline std::vector<MadeTensor> load_tensors(const std::filesystem::path& folder) {
  const auto source = formats::open_tensor_source(folder);
  std::vector<MadeTensor> out;
  for (const formats::StoredTensor& tensor : source->tensors()) {
    out.push_back({tensor.name, *tensor.dtype, tensor.shape, stored_bytes(*source, tensor.name)});
  }
  return out;
}

inline void write_checkpoint(const std::filesystem::path& folder,
                             const std::vector<MadeTensor>& tensors, const support::Json& config) {
  std::filesystem::create_directories(folder);
  std::vector<formats::NewTensor> news;
  for (const MadeTensor& tensor : tensors)
    news.push_back({tensor.name, tensor.dtype, tensor.shape});
  formats::ShardedWriter writer(folder, news, uint64_t{1} << 40);
  for (const MadeTensor& tensor : tensors) writer.write(tensor.name, tensor.bytes);
  writer.finish();
  write_file(folder / "config.json", config.dump(2));
}

inline support::Json load_config(const std::filesystem::path& folder) {
  return support::read_json((folder / "config.json").string());
}

// A GGUF file, built piece by piece.
class GgufBuilder {
 public:
  void text(const std::string& key, const std::string& value) {
    head(key, 8);
    string(&kv_, value);
  }
  void u32(const std::string& key, uint32_t value) {
    head(key, 4);
    append_number(kv_, value);
  }
  void f32(const std::string& key, float value) {
    head(key, 6);
    append_number(kv_, value);
  }
  // type: 0 F32, 1 F16, 30 BF16. shape in PyTorch's order.
  void tensor(const std::string& name, uint32_t type, const std::vector<int64_t>& shape,
              const std::vector<uint8_t>& bytes) {
    string(&infos_, name);
    append_number(infos_, static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i-- > 0;) append_number(infos_, static_cast<uint64_t>(shape[i]));
    append_number(infos_, type);
    append_number(infos_, static_cast<uint64_t>(data_.size()));
    data_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    data_.resize((data_.size() + 31) / 32 * 32);
    ++tensors_;
  }
  std::string bytes() const {
    std::string out = "GGUF";
    append_number(out, uint32_t{3});
    append_number(out, tensors_);
    append_number(out, keys_);
    out += kv_ + infos_;
    out.resize((out.size() + 31) / 32 * 32);
    return out + data_;
  }

 private:
  static void string(std::string* to, const std::string& value) {
    append_number(*to, static_cast<uint64_t>(value.size()));
    *to += value;
  }
  void head(const std::string& key, uint32_t type) {
    string(&kv_, key);
    append_number(kv_, type);
    ++keys_;
  }
  std::string kv_, infos_, data_;
  uint64_t keys_ = 0, tensors_ = 0;
};

}  // namespace loongforge::test
