// What families share: building a graph node by node while every tensor it names is looked up in
// the source and its shape checked. A config that asks for more layers than the file has ends at
// the first absent tensor. Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/hf_config.h"
#include "formats/tensor_source.h"
#include "models/registry.h"

namespace loongforge::models {

class GraphBuilder {
 public:
  // source_name: LoongIR name -> the source's name. REQUIRES source and config to outlive the
  // builder.
  GraphBuilder(const formats::HfConfig& config, const formats::TensorSource& source,
               std::function<std::string(const std::string&)> source_name);

  void set_block(int block) { block_ = block; }  // of the nodes that follow; -1: none

  // Nodes. Each returns its name, to be the input of others.
  std::string embedding(const std::string& name, const std::string& weight, int64_t rows,
                        int64_t cols);
  std::string rms_norm(const std::string& name, const std::string& input, const std::string& weight,
                       int64_t size, double eps, int64_t group = 0);
  // module: its tensors are <module>.weight and, with bias, <module>.bias.
  std::string linear(const std::string& name, const std::string& input, const std::string& module,
                     int64_t in, int64_t out, bool bias, int64_t interleaved_heads = 0);
  std::string tied_linear(const std::string& name, const std::string& input,
                          const std::string& weight, int64_t in, int64_t out);
  std::string rope(const std::string& name, const std::string& input, int64_t heads);
  std::string attention(const std::string& name, const std::string& q, const std::string& k,
                        const std::string& v, double scale, int64_t window = 0);
  std::string swiglu(const std::string& name, const std::string& gate, const std::string& up);
  std::string add(const std::string& name, const std::string& a, const std::string& b);

  // name becomes a second name of alias_of.
  void alias(const std::string& name, const std::string& alias_of);
  // Source tensors for which this holds carry nothing; what else no node uses is warned of.
  void ignore(const std::function<bool(std::string_view)>& carries_nothing) {
    ignorable_ = carries_nothing;
  }

  void warn(std::string text) { plan_.warnings.push_back(std::move(text)); }

  // Shard strategies by the static rule, then the plan.
  ModelPlan finish();

 private:
  ir::Node& node(const std::string& name, std::string op, std::vector<std::string> inputs);
  void tensor(const std::string& name, std::vector<int64_t> shape, int64_t interleaved_heads = 0);
  void assign_shards();
  void account_for_the_rest();

  const formats::HfConfig& config_;
  const formats::TensorSource& source_;
  std::function<std::string(const std::string&)> source_name_;
  std::function<bool(std::string_view)> ignorable_;
  std::unordered_set<std::string> used_;  // source tensors
  int block_ = -1;
  ModelPlan plan_;
};

}  // namespace loongforge::models
