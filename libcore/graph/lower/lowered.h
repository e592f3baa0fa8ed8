// The graph between the file's logical form and the plan: passes rewrite this list, each in a file
// of its own. Thread-safety: values.
#pragma once

#include <string>
#include <vector>

#include "graph/plan.h"
#include "ir/model.h"

namespace loongforge::graph {

// One or several nodes that run as one op. Values carry the names of the nodes that make them.
struct LoweredNode {
  std::string op;  // a node's op, or "head"
  std::string name;
  int block = -1;
  std::vector<std::string> inputs, outputs;
  std::vector<const ir::Node*> sources;  // in the order of outputs
  std::vector<std::string> adapters;     // linear: path per source, empty: none
};
using LoweredGraph = std::vector<LoweredNode>;

LoweredGraph from_file_graph(const ir::Graph& graph);
// Linears with one input and one precision in one block become one op with a segment each.
void join_linears(LoweredGraph* graph, const Parameters& params);
// The ropes of a block's query and key become one op (they run in place).
void join_ropes(LoweredGraph* graph);
// Gives linears their adapters.
void insert_lora(LoweredGraph* graph, Parameters& params);
// The last linear becomes the head, which makes loss and gradient without the full logits.
void fuse_head(LoweredGraph* graph);
// Ops and values of the final list.
StepList build_steps(const LoweredGraph& graph, Parameters& params, const PlanOptions& options);
// Forward, backward, recomputation: fills buffers, program and units from list.
void schedule(Plan* plan);

}  // namespace loongforge::graph
