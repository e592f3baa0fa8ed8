// The passes that only move nodes together. What they promise: the same roundings as the separate
// nodes.
#include <algorithm>

#include "graph/lower/lowered.h"
#include "graph/parameter_loader.h"

namespace loongforge::graph {
namespace {

// Appends `from` to `into` and marks it for removal.
void absorb(LoweredNode* into, LoweredNode* from) {
  into->outputs.insert(into->outputs.end(), from->outputs.begin(), from->outputs.end());
  into->sources.insert(into->sources.end(), from->sources.begin(), from->sources.end());
  from->op.clear();
}

void drop_absorbed(LoweredGraph* graph) {
  std::erase_if(*graph, [](const LoweredNode& n) { return n.op.empty(); });
}

// X of joined linears is one tensor: rounded for all of them, or for none.
bool same_precision(const Parameters& params, const LoweredNode& a, const LoweredNode& b) {
  const Weight& x = params.weight(a.sources.front()->params.at("weight"));
  const Weight& y = params.weight(b.sources.front()->params.at("weight"));
  return x.fp8_layer == y.fp8_layer && x.precision == y.precision;
}

}  // namespace

LoweredGraph from_file_graph(const ir::Graph& graph) {
  LoweredGraph list;
  for (const ir::Node& node : graph.nodes)
    list.push_back({node.op, node.name, node.block, node.inputs, {node.name}, {&node}, {}});
  return list;
}

void join_linears(LoweredGraph* graph, const Parameters& params) {
  for (size_t i = 0; i < graph->size(); ++i) {
    LoweredNode& first = (*graph)[i];
    if (first.op != "linear" || first.block < 0) continue;
    for (size_t j = i + 1; j < graph->size(); ++j) {
      LoweredNode& other = (*graph)[j];
      if (other.op == "linear" && other.block == first.block && other.inputs == first.inputs &&
          same_precision(params, first, other))
        absorb(&first, &other);
    }
  }
  drop_absorbed(graph);
}

void join_ropes(LoweredGraph* graph) {
  for (size_t i = 0; i < graph->size(); ++i) {
    LoweredNode& first = (*graph)[i];
    if (first.op != "rope") continue;
    for (size_t j = i + 1; j < graph->size(); ++j) {
      LoweredNode& other = (*graph)[j];
      if (other.op != "rope" || other.block != first.block) continue;
      // One op rotates both, so both inputs must exist where it stands: move it to the later place.
      other.inputs.insert(other.inputs.begin(), first.inputs.begin(), first.inputs.end());
      other.outputs.insert(other.outputs.begin(), first.outputs.begin(), first.outputs.end());
      other.sources.insert(other.sources.begin(), first.sources.begin(), first.sources.end());
      first.op.clear();
      break;
    }
  }
  drop_absorbed(graph);
}

void insert_lora(LoweredGraph* graph, Parameters& params) {
  for (LoweredNode& node : *graph) {
    if (node.op != "linear") continue;
    for (const ir::Node* source : node.sources) {
      std::string path = module_path(source->params.at("weight"));
      node.adapters.push_back(params.adapter(path) != nullptr ? path : std::string());
    }
  }
}

void fuse_head(LoweredGraph* graph) {
  if (!graph->empty() && graph->back().op == "linear") graph->back().op = "head";
}

}  // namespace loongforge::graph
