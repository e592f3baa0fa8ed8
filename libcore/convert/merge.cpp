#include "convert/merge.h"

#include <algorithm>

namespace loongforge::convert {

void warn_of_unknown_keys(const formats::PeftAdapter& adapter, ExportReport* report) {
  for (const std::string& key : adapter.config().unknown_keys) {
    report->warnings.push_back("adapter_config.json: the key " + key +
                               " is not known and is ignored");
  }
}

LoraDelta::LoraDelta(const formats::PeftAdapter& adapter, const formats::PeftModule& module)
    : a_(adapter.tensors().read_f32(*module.a)),
      b_(adapter.tensors().read_f32(*module.b)),
      r_(module.r),
      in_(module.in),
      scaling_(static_cast<float>(module.scaling)) {}

void LoraDelta::add(int64_t r0, int64_t r1, float* rows) const {
  std::vector<float> product(static_cast<size_t>(in_));
  for (int64_t row = r0; row < r1; ++row) {
    std::fill(product.begin(), product.end(), 0.0f);
    for (int64_t k = 0; k < r_; ++k) {
      const float factor = b_[static_cast<size_t>(row * r_ + k)];
      const float* a = a_.data() + k * in_;
      for (int64_t c = 0; c < in_; ++c) product[static_cast<size_t>(c)] += factor * a[c];
    }
    float* out = rows + (row - r0) * in_;
    for (int64_t c = 0; c < in_; ++c) out[c] += scaling_ * product[static_cast<size_t>(c)];
  }
}

}  // namespace loongforge::convert
