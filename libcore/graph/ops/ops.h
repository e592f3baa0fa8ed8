// The ops there are: one maker each, defined in the file of its name. lower/ calls them; nothing
// else does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/op.h"
#include "graph/ops/rope_table.h"
#include "graph/ops/rounding.h"

namespace loongforge::graph {

// shared_gradient: the tied head writes the weight's gradient first.
std::unique_ptr<Op> make_embedding(std::string name, std::string weight, int64_t cols,
                                   kernels::Elem edge, int trainable, bool shared_gradient);

struct RmsNormSpec {
  std::string weight;
  int64_t cols = 0, group = 0;  // group == cols: the whole row
  float eps = 0;
  kernels::Elem elem = kernels::Elem::kBf16;
  int trainable = -1;
};
std::unique_ptr<Op> make_rms_norm(std::string name, int block, const RmsNormSpec& spec);

// Linears that share their input, side by side: y_s = x W_s^T (+ bias) (+ LoRA), s = 0 .. segments
// - 1.
struct LinearSegment {
  std::string weight, bias;  // tensor names; bias may be empty
  std::string path;          // of its adapter, empty: none
  int64_t n = 0;
  int trainable = -1, bias_trainable = -1;
  RoundedTensor gradient;  // how its dY is rounded by kCompute
};
struct LinearSpec {
  std::vector<LinearSegment> segments;
  int64_t k = 0;
  kernels::Elem elem = kernels::Elem::kBf16;
  int64_t total_rank = 0;  // of all adapters, 0: none
  float dropout = 0;
  quant::Activations activations = quant::Activations::kSaved;
  RoundedTensor input;  // how X is rounded by kSaved and kCompute
  kernels::Precision precision = kernels::Precision::kBf16;  // of the operands
};
std::unique_ptr<Op> make_linear(std::string name, int block, const LinearSpec& spec);

// Rotates its inputs in place (query and key heads).
struct RopeSpec {
  int64_t head_dim = 0;
  std::vector<int64_t> heads;  // per input
  kernels::Elem elem = kernels::Elem::kBf16;
  std::shared_ptr<const RopeTables> tables;
};
std::unique_ptr<Op> make_rope(std::string name, int block, const RopeSpec& spec);

struct AttentionSpec {
  int64_t heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  float scale = 0;
  kernels::Elem elem = kernels::Elem::kBf16;
};
std::unique_ptr<Op> make_attention(std::string name, int block, const AttentionSpec& spec);

std::unique_ptr<Op> make_swiglu(std::string name, int block, int64_t cols, kernels::Elem elem);
std::unique_ptr<Op> make_add(std::string name, int block, int64_t cols, kernels::Elem elem);

// The output layer. With targets: loss and the gradient of its input (the logits exist only for a
// chunk of tokens at a time); without: logits of each document's last token.
struct HeadSpec {
  std::string weight;
  int64_t k = 0, vocab = 0;
  int trainable = -1;
  bool with_loss = true, with_gradient = true;
  kernels::Elem elem = kernels::Elem::kBf16;  // of dX and of the logits' gradient as an operand
  kernels::Precision precision = kernels::Precision::kBf16;
};
std::unique_ptr<Op> make_head(std::string name, const HeadSpec& spec);

}  // namespace loongforge::graph
