// What decoder families have in common: token embedding, blocks of causal grouped-query attention
// and a gated MLP, an RMSNorm before each, a final norm, and a head of its own or the embedding's.
//
//   x += o(attention(rope(q(norm(x))), rope(k(norm(x))), v(norm(x))))
//   x += down(silu(gate(norm(x))) * up(norm(x)))
//
// A family's file says where it differs. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/hf_config.h"
#include "formats/tensor_source.h"
#include "models/registry.h"

namespace loongforge::models {

struct DecoderSpec {
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  bool qk_norm = false;          // RMSNorm of each head of q and k, before they are rotated
  std::vector<int64_t> windows;  // of each layer, 0: sees all; empty: all layers see all
  bool gguf_interleaved =
      false;  // GGUF files keep the rows of q and k in pairs (i, i + head_dim / 2)
};

ModelPlan plan_decoder(const formats::HfConfig& config, const formats::TensorSource& source,
                       SourceNames names, const DecoderSpec& spec);

// Windows by layer_types, or else of the layers from max_window_layers on, where use_sliding_window
// is true: the rule of Qwen2 and Qwen3, with their defaults where config.json has no such key.
std::vector<int64_t> qwen_windows(const formats::HfConfig& config);

}  // namespace loongforge::models
