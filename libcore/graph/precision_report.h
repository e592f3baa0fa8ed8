// Which tensor is stored and runs in which precision, and why: loongamp's decisions for one model
// as a table. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/api.h"
#include "graph/parameters.h"
#include "ir/model.h"

namespace loongforge::graph {

struct PrecisionRow {
  std::string tensor;
  std::string role;    // "linear", "head", "embedding", "norm", "bias", "adapter"
  std::string shape;   // "576 x 1536"
  std::string stored;  // in the model's file: "BF16"
  std::string weight;  // in memory: "e4m3 128x128", "bf16", "fp32"
  std::string inputs;  // of its layer: "bf16, saved as e4m3", "e4m3", "fp32"; empty: no product
  std::string gradients;
  std::string reason;
};

// In the order of the graph; params declared or loaded.
LF_API std::vector<PrecisionRow> precision_rows(const Parameters& params, const ir::Model& model);
// For a terminal: an entry of a few short lines a tensor; layers that are alike share one, as
// model.layers.0-29.mlp.up_proj.weight.
LF_API std::string precision_table(const std::vector<PrecisionRow>& rows);

}  // namespace loongforge::graph
