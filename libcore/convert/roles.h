// Which part each tensor plays in a graph, for the precision policy. Thread-safety: pure functions.
#pragma once

#include <string>
#include <unordered_map>

#include "ir/model.h"
#include "quant/loongamp.h"

namespace loongforge::convert {

// The first use counts: a tied head's tensor is the embedding's. The head is the graph's last node.
std::unordered_map<std::string, quant::TensorRole> tensor_roles(const ir::Graph& graph);

}  // namespace loongforge::convert
