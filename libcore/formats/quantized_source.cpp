#include "formats/quantized_source.h"

#include <unordered_set>
#include <utility>

#include "formats/quant_methods.h"

namespace loongforge::formats {

using support::printable;

namespace {

constexpr QuantMethod kMethods[] = {
    {"fp8", plan_finegrained_fp8},
    {"compressed-tensors", plan_compressed_tensors},
    {"fbgemm_fp8", plan_fbgemm_fp8},
    {"bitsandbytes", plan_bitsandbytes},
};

const QuantMethod& find_method(const Keys& config, const std::string& name) {
  std::string known;
  for (const QuantMethod& method : kMethods) {
    if (method.name == name) return method;
    known += (known.empty() ? "" : ", ") + std::string(method.name);
  }
  config.fail(
      "quant_method",
      name.empty() ? "is missing" : "is \"" + printable(name, 40) + "\", which cannot be read",
      "known: " + known + "; or take the bf16 checkpoint of this model");
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

QuantizedSource::QuantizedSource(std::unique_ptr<TensorSource> stored,
                                 support::Json quantization_config, std::string where)
    : TensorSource(stored->path()),
      stored_(std::move(stored)),
      config_(std::move(quantization_config)) {
  metadata_ = stored_->metadata();
  if (!config_.is_object()) {
    throw_bad_data(std::move(where), std::string("quantization_config is JSON of type ") +
                                         config_.type_name() + ", not an object");
  }
  const Keys keys(config_, where, "quantization_config.");
  method_ = keys.string("quant_method", "");
  QuantPlan plan = find_method(keys, method_).plan(*stored_, keys);
  quantized_ = std::move(plan.tensors);
  for (size_t i = 0; i < quantized_.size(); ++i) index_.emplace(quantized_[i].name, i);
  const std::unordered_set<std::string_view> claimed(plan.claimed.begin(), plan.claimed.end());
  std::vector<StoredTensor> logical;
  for (const StoredTensor& tensor : stored_->tensors()) {
    const auto quantized = index_.find(tensor.name);
    if (quantized != index_.end()) {
      StoredTensor& seen = logical.emplace_back(tensor);
      seen.shape = quantized_[quantized->second].shape;
      seen.dtype.reset();  // its bytes are no elements
    } else if (!claimed.contains(tensor.name)) {
      logical.push_back(tensor);
    }
  }
  set_tensors(std::move(logical));
}

QuantizedSource::~QuantizedSource() = default;

const QuantizedTensor* QuantizedSource::quantized(const StoredTensor& tensor) const {
  const auto found = index_.find(tensor.name);
  return found == index_.end() ? nullptr : &quantized_[found->second];
}

void QuantizedSource::read_range(const StoredTensor& tensor, uint64_t offset,
                                 std::span<uint8_t> out) const {
  if (quantized(tensor) != nullptr)
    throw_failed(tensor.where(), "is quantised: its bytes are no elements");
  stored_->read_range(stored_->at(tensor.name), offset, out);
}

bool QuantizedSource::readable_f32(const StoredTensor& tensor) const {
  return quantized(tensor) != nullptr || stored_->readable_f32(stored_->at(tensor.name));
}

void QuantizedSource::read_rows_f32(const StoredTensor& tensor, int64_t row0, int64_t row1,
                                    std::span<float> out) const {
  const QuantizedTensor* quantized = this->quantized(tensor);
  if (quantized == nullptr) {
    stored_->read_rows_f32(stored_->at(tensor.name), row0, row1, out);
    return;
  }
  check_rows(tensor, row0, row1, out.size());
  switch (quantized->scheme) {
    case QuantScheme::kFp8:
      read_fp8_rows(*stored_, *quantized, row0, row1, out);
      break;
    case QuantScheme::kNf4:
      read_nf4_rows(*stored_, *quantized, row0, row1, out);
      break;
  }
}

std::unique_ptr<TensorSource> with_quantization(std::unique_ptr<TensorSource> source,
                                                const HfConfig& config) {
  if (config.quant_method.empty()) return source;
  return std::make_unique<QuantizedSource>(std::move(source), config.raw.at("quantization_config"),
                                           config.where);
}

}  // namespace loongforge::formats
