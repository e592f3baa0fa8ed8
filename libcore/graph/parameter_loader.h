// Fills Parameters from a LoongIR folder: streams row stripes into packed weights, so that a weight
// is in memory once. Thread-safety: one thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/parameters.h"
#include "quant/loongamp.h"

namespace loongforge::graph {

class ParameterLoader {
 public:
  ParameterLoader(const ir::Reader& reader, const ParameterOptions& options, ThreadPool& pool);
  std::unique_ptr<Parameters> run();
  std::unique_ptr<Parameters> declare_only();

 private:
  void declare();  // trainables, adapters: names, sizes, offsets
  void declare_adapters(const std::string& input);
  int add_trainable(std::string name, int64_t rows, int64_t cols, bool decay, int block);
  void declare_weight(const ir::Node& node, quant::TensorRole role);
  void declare_vector(const ir::Node& node, const std::string& tensor);
  void shape_weight(Weight* weight);
  void check_targets() const;
  void check_patterns();
  void check_precision_patterns();
  void refuse_unused(const std::string& flag, const std::vector<std::string>& patterns,
                     const std::vector<std::string>& names, const std::string& what,
                     const std::string& hint) const;
  void allocate_weights();
  void load_weight(Weight* weight);
  void load_master(const Weight& weight, const ir::TensorEntry& entry, const uint8_t* rows,
                   int64_t row0, int64_t count);
  void load_vector(VectorParam* vector);
  void init_adapters();
  kernels::Elem target_elem(const ir::TensorEntry& entry, Weight* weight) const;
  float largest(const ir::TensorEntry& entry) const;
  // One stripe of rows as dense fp32.
  void stripe_to_f32(const ir::TensorEntry& entry, const uint8_t* rows, int64_t row0, int64_t count,
                     float* out) const;
  void pack_stripe(Weight* weight, const ir::TensorEntry& entry, const uint8_t* rows, int64_t row0,
                   int64_t count);

  const ir::Reader& reader_;
  const ParameterOptions& options_;
  ThreadPool& pool_;
  quant::AmpPolicy policy_;
  std::unique_ptr<Parameters> params_;
  std::set<std::string> adapted_inputs_;
  std::vector<float> scales_;  // of the FP8 tensor being read
  bool tied_ = false;
};

// "model.layers.0.self_attn.q_proj.weight" -> "model.layers.0.self_attn.q_proj": the module's path
// in PEFT's spelling.
std::string module_path(const std::string& weight_name);
// Its last component: "q_proj".
std::string module_leaf(const std::string& path);

}  // namespace loongforge::graph
