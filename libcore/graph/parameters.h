// Weights in memory: packed for the kernels, masters in FP32 where they are trained, LoRA adapters.
//
// Invariants: a weight is in memory once (packed); a trained one also has its master in the flat
// array masters(), FP32, or in masters_bf16(). Trainables lie in that array in the order of the
// graph's nodes, so that a block's are contiguous; gradients use the same offsets. Thread-safety:
// const access from several threads; refresh() and loading from one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/api.h"
#include "base/pool.h"
#include "ir/reader.h"
#include "kernels/gemm.h"
#include "kernels/quant.h"
#include "kernels/types.h"
#include "quant/loongamp.h"
#include "quant/recipe.h"
#include "quant/statistics.h"
#include "support/json.h"

namespace loongforge::graph {

struct LoraModule {
  int64_t rank = 0;
  float scale = 0;
};
struct LoraOptions {
  int64_t rank = 8;
  double alpha = 16;
  double dropout = 0;
  bool rslora = false;
  uint64_t seed = 42;  // of the initial A
  std::vector<std::string>
      targets;  // last components of node names ("q_proj"); empty: every linear but the head
  // Not empty: exactly these modules (of an adapter that was read), whatever stands above but
  // dropout and seed.
  std::map<std::string, LoraModule> modules;
  support::Json
      source;  // that adapter's configuration, for who writes it again; nothing here reads it
};

struct ParameterOptions {
  quant::Recipe recipe;
  std::vector<quant::AmpRule> precision_overrides;  // stand before the policy of the recipe
  bool train_all = false;                           // full fine-tuning
  bool bf16_masters = false;  // train_all: masters of matrices in bf16 (--master bf16)
  bool lora = false;
  LoraOptions lora_options;
  Pages pages =
      Pages::kTransparent;  // of packed weights; kHuge falls back with one line in the log
};

// A trained array: rows x cols at `offset` floats in every gradient buffer, and its master at
// master_offset in masters() or masters_bf16(), by its element. Where all masters are FP32 the two
// offsets are the same.
struct Trainable {
  std::string name;  // HF name of the weight, or "<node>.lora_A" / "<node>.lora_B_t"
  int64_t rows = 0, cols = 0;
  int64_t offset = 0;
  bool decay = false;  // weight decay applies (2-D weights)
  int block = -1;
  kernels::Elem master = kernels::Elem::kF32;
  int64_t master_offset = 0;
  int64_t size() const { return rows * cols; }
};

struct Weight {
  std::string name;
  kernels::PackedWeight
      packed;  // in Parameters' one block of memory; data is null when only declared
  std::vector<int8_t> exponents;
  int trainable = -1;  // index into trainables()
  quant::TensorRole role = quant::TensorRole::kLinear;
  std::string reason;                                        // of its element
  kernels::Precision precision = kernels::Precision::kBf16;  // of the operands of its layer
  bool fp8_layer = false;    // its layer's activations follow --fp8_activations
  float amax_factor = 1.0f;  // before its scales are chosen
};

struct VectorParam {  // norm weights and biases
  std::string name;
  std::vector<float> own;  // when not trained
  int64_t size = 0;
  int trainable = -1;
};

// y += scale * (x A^T) B^T. A [rank, k], B_t [rank, n] (B transposed), FP32 masters.
struct Adapter {
  std::string node;  // node of the linear, e.g. "model.layers.0.self_attn.q_proj"
  int64_t rank = 0, k = 0, n = 0;
  float scale = 0, dropout = 0;
  uint32_t mask_stream = 0;
  int a = -1, b_t = -1;      // indices into trainables()
  AlignedBuffer scaled_b_t;  // scale * B_t, refreshed after each update
};

class LF_API Parameters {
 public:
  // Reads what the graph of reader.model() names. Throws Error; progress is logged.
  static std::unique_ptr<Parameters> load(const ir::Reader& reader, const ParameterOptions& options,
                                          ThreadPool& pool);
  // The same objects without memory behind them: enough to make a plan and to tell what loading
  // would take.
  static std::unique_ptr<Parameters> declare(const ir::Reader& reader,
                                             const ParameterOptions& options, ThreadPool& pool);
  ~Parameters();

  const ParameterOptions& options() const { return options_; }
  const Weight& weight(const std::string& name) const;  // aliases resolved
  const std::map<std::string, Weight>& weights() const { return weights_; }
  const float* vector(const std::string& name) const;
  int vector_trainable(const std::string& name) const;  // -1: not trained
  Adapter* adapter(const std::string& node);            // null: none
  const std::map<std::string, Adapter>& adapters() const { return adapters_; }

  const std::vector<Trainable>& trainables() const { return trainables_; }
  int64_t trainable_floats() const { return trainable_floats_; }  // length of a gradient buffer
  float* masters() { return masters_.as<float>(); }
  const float* masters() const { return masters_.as<float>(); }
  kernels::Bf16* masters_bf16() { return masters_bf16_.as<kernels::Bf16>(); }
  const kernels::Bf16* masters_bf16() const { return masters_bf16_.as<kernels::Bf16>(); }
  // REQUIRES that its master is FP32.
  const float* master(int trainable) const {
    return masters() + trainables_[static_cast<size_t>(trainable)].master_offset;
  }
  float* master(int trainable) {
    return masters() + trainables_[static_cast<size_t>(trainable)].master_offset;
  }
  kernels::Mat master_rows(int trainable, int64_t row0) const;  // from row0 on, of either element
  // After masters changed: makes codes, packed weights and scaled adapters anew. stats: what was
  // rounded to FP8, by tensor; measure_errors: with its cost.
  void refresh(ThreadPool& pool, quant::StatsMap* stats, bool measure_errors = false);

  int64_t parameter_count() const {
    return parameter_count_;
  }  // of the model, adapters not counted
  int64_t linear_parameter_count() const {
    return linear_count_;
  }  // weights of linears, head included
  int64_t trainable_count() const;
  // FP8 weights of the file whose scales are no powers of two in blocks of 128 x 128: they run
  // decoded, in bf16 (fp32).
  int64_t decoded_weights() const { return decoded_weights_; }
  // What is asked for and has no effect on this model, a line each.
  const std::vector<std::string>& notes() const { return notes_; }
  // Patterns of --fp8_scale_override that have no effect; "": --fp8_scale_factor has none.
  const std::set<std::string>& idle_scaling() const { return idle_scaling_; }
  std::string decoded_note() const;  // one line that says so; empty when there are none
  size_t resident_bytes()
      const;  // packed weights, vectors, masters, adapters: what loading takes, declared or loaded

 private:
  friend class ParameterLoader;
  Parameters() = default;
  ParameterOptions options_;
  std::map<std::string, Weight> weights_;
  std::map<std::string, std::string> alias_;
  std::map<std::string, VectorParam> vectors_;
  std::map<std::string, Adapter> adapters_;
  std::vector<Trainable> trainables_;
  std::vector<std::string> notes_;
  std::set<std::string> idle_scaling_;
  AlignedBuffer packed_, masters_, masters_bf16_;
  int64_t trainable_floats_ = 0, master_floats_ = 0, master_bf16s_ = 0, parameter_count_ = 0,
          linear_count_ = 0, decoded_weights_ = 0;
};

}  // namespace loongforge::graph
