#include "convert/roles.h"

namespace loongforge::convert {

std::unordered_map<std::string, quant::TensorRole> tensor_roles(const ir::Graph& graph) {
  std::unordered_map<std::string, quant::TensorRole> roles;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const ir::Node& node = graph.nodes[i];
    const bool head = i + 1 == graph.nodes.size();
    for (const auto& [param, name] : node.params) {
      quant::TensorRole role = quant::TensorRole::kOther;
      if (node.op == "embedding") role = quant::TensorRole::kEmbedding;
      if (node.op == "rms_norm") role = quant::TensorRole::kNorm;
      if (node.op == "linear") role = head ? quant::TensorRole::kHead : quant::TensorRole::kLinear;
      if (param == "bias") role = quant::TensorRole::kBias;
      roles.emplace(name, role);
    }
  }
  return roles;
}

}  // namespace loongforge::convert
