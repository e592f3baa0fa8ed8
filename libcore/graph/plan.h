// The plan that runs: ops, buffers and the program over them, lowered from the graph that the model
// file holds.
//
// Invariants: instructions stand in execution order; a buffer is live from its first to its last
// use, and two buffers that are live at the same time never share arena memory. Thread-safety:
// immutable once built.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/api.h"
#include "graph/op.h"
#include "ir/model.h"

namespace loongforge::graph {

enum class PlanMode : uint8_t {
  kTrain,     // forward, loss, backward
  kEval,      // forward, loss
  kGenerate,  // forward with a KV cache, logits of each document's last token
};

struct PlanOptions {
  PlanMode mode = PlanMode::kTrain;
  quant::Recipe recipe;                 // the one that Parameters were loaded with
  bool gradient_checkpointing = false;  // keep only what enters a block, and attention's output
  int64_t max_positions = 0;            // longest document that will run
  bool join_linears = true;             // off: for tests
};

// Ops with the values they read and write; a value is known by its index.
struct Step {
  std::unique_ptr<Op> op;
  std::vector<int> in, out;
};
struct ValueInfo {
  std::string name;
  int64_t cols = 0;
  kernels::Elem elem = kernels::Elem::kBf16;
  bool edge = false;  // leaves a block: always saved
  int producer = -1;
};
struct StepList {
  std::vector<Step> steps;  // the head is the last one
  std::vector<ValueInfo> values;
};

struct UnitEnd {
  size_t instruction;  // the unit's gradients are complete after it
  int block;           // -1: embedding, final norm, head
};

struct Plan {
  StepList list;
  std::vector<BufferSpec> buffers;
  std::vector<Instruction> program;
  std::vector<UnitEnd> units;
  PlanOptions options;
  std::vector<std::unique_ptr<Op>> helpers;  // ops that the schedule inserted
  double forward_flops_per_token = 0;        // of products with weights
};

// Throws Error(kBadData) where the graph cannot be run.
LF_API Plan make_plan(const ir::Model& model, Parameters& params, const PlanOptions& options);

// Arena offsets for a batch of `tokens` rows.
struct MemoryLayout {
  std::vector<size_t> offsets;
  size_t total = 0;
};
LF_API MemoryLayout lay_out(const Plan& plan, int64_t tokens);

}  // namespace loongforge::graph
