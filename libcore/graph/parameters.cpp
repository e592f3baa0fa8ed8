#include "graph/parameters.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "graph/parameter_loader.h"
#include "graph/weight_codes.h"

namespace loongforge::graph {

std::unique_ptr<Parameters> Parameters::load(const ir::Reader& reader,
                                             const ParameterOptions& options, ThreadPool& pool) {
  return ParameterLoader(reader, options, pool).run();
}

std::unique_ptr<Parameters> Parameters::declare(const ir::Reader& reader,
                                                const ParameterOptions& options, ThreadPool& pool) {
  return ParameterLoader(reader, options, pool).declare_only();
}

Parameters::~Parameters() = default;

const Weight& Parameters::weight(const std::string& name) const {
  auto alias = alias_.find(name);
  auto it = weights_.find(alias == alias_.end() ? name : alias->second);
  if (it == weights_.end()) throw_bad_data(name, "no such weight was loaded");
  return it->second;
}

const float* Parameters::vector(const std::string& name) const {
  auto it = vectors_.find(name);
  if (it == vectors_.end()) throw_bad_data(name, "no such vector was loaded");
  const VectorParam& v = it->second;
  return v.trainable < 0 ? v.own.data() : master(v.trainable);
}

int Parameters::vector_trainable(const std::string& name) const {
  auto it = vectors_.find(name);
  return it == vectors_.end() ? -1 : it->second.trainable;
}

Adapter* Parameters::adapter(const std::string& node) {
  auto it = adapters_.find(node);
  return it == adapters_.end() ? nullptr : &it->second;
}

kernels::Mat Parameters::master_rows(int trainable, int64_t row0) const {
  const Trainable& t = trainables_[static_cast<size_t>(trainable)];
  const int64_t at = t.master_offset + row0 * t.cols;
  if (t.master == kernels::Elem::kBf16) return {masters_bf16() + at, t.cols, t.master};
  return {masters() + at, t.cols, t.master};
}

void Parameters::refresh(ThreadPool& pool, quant::StatsMap* stats, bool measure_errors) {
  for (auto& [path, adapter] : adapters_) {
    const float* b_t = master(adapter.b_t);
    float* scaled = adapter.scaled_b_t.as<float>();
    for (int64_t i = 0; i < adapter.rank * adapter.n; ++i) scaled[i] = adapter.scale * b_t[i];
  }
  for (auto& [name, weight] : weights_) {
    if (weight.trainable < 0) continue;
    const quant::TensorStats of_weight =
        pack_master(&weight, master_rows(weight.trainable, 0), options_.recipe.scales,
                    measure_errors && stats != nullptr, pool);
    if (stats != nullptr && of_weight.elements > 0) (*stats)[name].add(of_weight);
  }
}

std::string Parameters::decoded_note() const {
  if (decoded_weights_ == 0) return {};
  return std::to_string(decoded_weights_) +
         (decoded_weights_ == 1 ? " FP8 weight has" : " FP8 weights have") +
         " scales that are no powers of two in blocks of 128 x 128, and " +
         (decoded_weights_ == 1 ? "runs decoded, in " : "run decoded, in ") +
         (options_.recipe.precision == quant::RunPrecision::kFp32
              ? "fp32"
              : "bf16, at twice the memory of their codes");
}

int64_t Parameters::trainable_count() const {
  int64_t n = 0;
  for (const Trainable& t : trainables_) n += t.size();
  return n;
}

size_t Parameters::resident_bytes() const {
  size_t bytes =
      static_cast<size_t>(master_floats_) * sizeof(float) + static_cast<size_t>(master_bf16s_) * 2;
  for (const auto& [name, w] : weights_)
    bytes +=
        kernels::packed_weight_bytes(w.packed.elem, w.packed.n, w.packed.k) + w.exponents.size();
  for (const auto& [name, v] : vectors_)
    bytes += v.trainable < 0 ? static_cast<size_t>(v.size) * sizeof(float) : 0;
  for (const auto& [name, a] : adapters_)
    bytes += static_cast<size_t>(a.rank * a.n) * sizeof(float);
  return bytes;
}

}  // namespace loongforge::graph
