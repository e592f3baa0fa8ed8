#include "graph/parameters.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "graph/parameter_loader.h"

namespace loongforge::graph {

using kernels::Elem;

std::unique_ptr<Parameters> Parameters::load(const ir::Reader& reader, const ParameterOptions& options,
                                             ThreadPool& pool) {
  return ParameterLoader(reader, options, pool).run();
}

std::unique_ptr<Parameters> Parameters::declare(const ir::Reader& reader, const ParameterOptions& options,
                                                ThreadPool& pool) {
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
  return v.trainable < 0 ? v.own.data() : masters() + trainables_[static_cast<size_t>(v.trainable)].offset;
}

int Parameters::vector_trainable(const std::string& name) const {
  auto it = vectors_.find(name);
  return it == vectors_.end() ? -1 : it->second.trainable;
}

Adapter* Parameters::adapter(const std::string& node) {
  auto it = adapters_.find(node);
  return it == adapters_.end() ? nullptr : &it->second;
}

namespace {

// Codes (or bf16, or fp32) of rows [r0, r1) from the master; staging holds 128 rows of bytes.
void repack_rows(const Weight& w, const float* master, float amax_factor, int64_t r0, int64_t r1, uint8_t* staging,
                 int8_t* exponents, kernels::QuantCounts* counts) {
  const int64_t k = w.packed.k;
  const float* src = master + r0 * k;
  if (w.packed.elem == Elem::kF32) {
    kernels::pack_weight_rows(w.packed, src, k, r0, r1);
    return;
  }
  if (w.packed.elem == Elem::kBf16) {
    kernels::cast(src, Elem::kF32, staging, Elem::kBf16, (r1 - r0) * k, true);
  } else {
    const int64_t col_blocks = (k + kernels::kWeightBlock - 1) / kernels::kWeightBlock;
    kernels::quantize_weight(w.packed.elem, {src, k, Elem::kF32}, r1 - r0, k, amax_factor, staging, k,
                             exponents + r0 / kernels::kWeightBlock * col_blocks, counts, 0, r1 - r0);
  }
  kernels::pack_weight_rows(w.packed, staging, k, r0, r1);
}

}  // namespace

void Parameters::refresh(ThreadPool& pool, kernels::QuantCounts* counts) {
  for (auto& [path, adapter] : adapters_) {
    const float* b_t = master(adapter.b_t);
    float* scaled = adapter.scaled_b_t.as<float>();
    for (int64_t i = 0; i < adapter.rank * adapter.n; ++i) scaled[i] = adapter.scale * b_t[i];
  }
  constexpr int64_t kRows = kernels::kWeightBlock;
  std::vector<kernels::QuantCounts> per_worker(static_cast<size_t>(pool.threads()));
  for (auto& [name, weight] : weights_) {
    if (weight.trainable < 0) continue;
    Weight& w = weight;
    const float* from = master(w.trainable);
    pool.reserve_scratch(static_cast<size_t>(kRows * w.packed.k * 2));
    pool.run((w.packed.n + kRows - 1) / kRows, [&](int64_t t, int worker) {
      repack_rows(w, from, options_.amax_factor, t * kRows, std::min(w.packed.n, (t + 1) * kRows),
                  static_cast<uint8_t*>(pool.scratch(worker)), w.exponents.data(),
                  &per_worker[static_cast<size_t>(worker)]);
    });
  }
  if (counts == nullptr) return;
  for (const kernels::QuantCounts& c : per_worker) {
    counts->overflow += c.overflow;
    counts->nan += c.nan;
    counts->zero += c.zero;
  }
}

int64_t Parameters::trainable_count() const {
  int64_t n = 0;
  for (const Trainable& t : trainables_) n += t.size();
  return n;
}

size_t Parameters::resident_bytes() const {
  size_t bytes = static_cast<size_t>(trainable_floats_) * sizeof(float);
  for (const auto& [name, w] : weights_)
    bytes += kernels::packed_weight_bytes(w.packed.elem, w.packed.n, w.packed.k) + w.exponents.size();
  for (const auto& [name, v] : vectors_) bytes += v.trainable < 0 ? static_cast<size_t>(v.size) * sizeof(float) : 0;
  for (const auto& [name, a] : adapters_) bytes += static_cast<size_t>(a.rank * a.n) * sizeof(float);
  return bytes;
}

}  // namespace loongforge::graph
