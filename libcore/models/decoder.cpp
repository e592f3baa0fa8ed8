#include "models/decoder.h"

#include <cmath>
#include <string>

#include "base/error.h"
#include "models/builder.h"
#include "models/decoder_gguf.h"
#include "support/printable.h"

namespace loongforge::models {
namespace {

using formats::HfConfig;
using support::printable;

void check_sizes(const HfConfig& config) {
  const auto need = [&config](int64_t value, const char* key) {
    if (value < 1) throw_bad_data(config.where, std::string(key) + " is absent or not positive");
  };
  need(config.vocab_size, "vocab_size");
  need(config.hidden_size, "hidden_size");
  need(config.intermediate_size, "intermediate_size");
  need(config.num_hidden_layers, "num_hidden_layers");
  need(config.num_attention_heads, "num_attention_heads");
  need(config.num_key_value_heads, "num_key_value_heads");
  need(config.head_dim, "head_dim");
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    throw_bad_data(config.where, "num_attention_heads is no multiple of num_key_value_heads");
  }
  if (config.head_dim % 2 != 0)
    throw_bad_data(config.where, "head_dim is odd, rotary embedding needs pairs");
  // The shapes of q, k, v and o are products of these two.
  constexpr int64_t kMost = int64_t{1} << 30;
  if (config.head_dim > kMost || config.num_attention_heads > kMost) {
    throw_bad_data(config.where, "num_attention_heads or head_dim is not possible");
  }
}

// What changes the mathematics and is not honoured is refused by name.
void check_mathematics(const HfConfig& config) {
  if (!config.architecture.empty() && !config.architecture.ends_with("ForCausalLM")) {
    throw_bad_data(config.where,
                   "architectures names " + printable(config.architecture, 60) +
                       ", which has no language model head",
                   "known: ...ForCausalLM");
  }
  if (config.hidden_act != "silu") {
    throw_bad_data(config.where,
                   "hidden_act \"" + printable(config.hidden_act, 60) + "\" is not supported",
                   "known: silu");
  }
  if (config.rope.type == "longrope") {
    throw_bad_data(config.where, "rope type \"longrope\" is not supported",
                   "known: default, linear, dynamic, yarn, llama3");
  }
  if (config.rope.type == "dynamic" && config.head_dim < 4)
    throw_bad_data(config.where, "rope type \"dynamic\" needs a head_dim above 2");
  if (config.rotary_dim() != config.head_dim)
    throw_bad_data(config.where, "partial_rotary_factor other than 1 is not supported");
}

bool is_old_buffer(std::string_view name) { return name.ends_with("rotary_emb.inv_freq"); }

class DecoderPlan {
 public:
  DecoderPlan(const HfConfig& config, const formats::TensorSource& source, SourceNames names,
              const DecoderSpec& spec)
      : config_(config),
        spec_(spec),
        interleaved_(names == SourceNames::kGguf && spec.gguf_interleaved),
        b_(config, source, [names](const std::string& name) {
          return names == SourceNames::kGguf ? decoder_gguf_name(name) : name;
        }) {
    b_.ignore([names](std::string_view name) {
      return names == SourceNames::kGguf ? is_gguf_buffer(name) : is_old_buffer(name);
    });
  }

  ModelPlan run() {
    const int64_t hidden = config_.hidden_size;
    std::string x =
        b_.embedding("embed_tokens", "model.embed_tokens.weight", config_.vocab_size, hidden);
    for (int64_t i = 0; i < config_.num_hidden_layers; ++i) {
      b_.set_block(static_cast<int>(i));
      layer_ = "layers." + std::to_string(i) + ".";
      x = b_.add(layer_ + "self_attn.residual", x,
                 attention(norm("input_layernorm", x, hidden), i));
      x = b_.add(layer_ + "mlp.residual", x, mlp(norm("post_attention_layernorm", x, hidden)));
    }
    b_.set_block(-1);
    x = b_.rms_norm("norm", x, "model.norm.weight", hidden, config_.rms_norm_eps);
    if (config_.tie_word_embeddings) {
      b_.tied_linear("lm_head", x, "model.embed_tokens.weight", hidden, config_.vocab_size);
      b_.alias("lm_head.weight", "model.embed_tokens.weight");
    } else {
      b_.linear("lm_head", x, "lm_head", hidden, config_.vocab_size, false);
    }
    if (config_.attention_dropout > 0) {
      b_.warn(config_.where + ": attention_dropout is not applied in training");
    }
    return b_.finish();
  }

 private:
  // Nodes of the present layer, tensors of the same name under "model.".
  std::string norm(const std::string& name, const std::string& input, int64_t size,
                   int64_t group = 0) {
    return b_.rms_norm(layer_ + name, input, "model." + layer_ + name + ".weight", size,
                       config_.rms_norm_eps, group);
  }
  std::string linear(const std::string& name, const std::string& input, int64_t in, int64_t out,
                     bool bias, int64_t rotary_heads = 0) {
    return b_.linear(layer_ + name, input, "model." + layer_ + name, in, out, bias,
                     interleaved_ ? rotary_heads : 0);
  }

  std::string attention(const std::string& normed, int64_t layer) {
    const int64_t hidden = config_.hidden_size, dim = config_.head_dim;
    const int64_t heads = config_.num_attention_heads, kv_heads = config_.num_key_value_heads;
    std::string q = linear("self_attn.q_proj", normed, hidden, heads * dim, spec_.qkv_bias, heads);
    std::string k =
        linear("self_attn.k_proj", normed, hidden, kv_heads * dim, spec_.qkv_bias, kv_heads);
    const std::string v =
        linear("self_attn.v_proj", normed, hidden, kv_heads * dim, spec_.qkv_bias);
    if (spec_.qk_norm) {
      q = norm("self_attn.q_norm", q, dim, dim);
      k = norm("self_attn.k_norm", k, dim, dim);
    }
    q = b_.rope(layer_ + "self_attn.q_rope", q, heads);
    k = b_.rope(layer_ + "self_attn.k_rope", k, kv_heads);
    const double scale = 1.0 / std::sqrt(static_cast<double>(dim));
    const int64_t window = spec_.windows.empty() ? 0 : spec_.windows.at(static_cast<size_t>(layer));
    const std::string mixed = b_.attention(layer_ + "self_attn.attention", q, k, v, scale, window);
    return linear("self_attn.o_proj", mixed, heads * dim, hidden, spec_.o_bias);
  }

  std::string mlp(const std::string& normed) {
    const int64_t hidden = config_.hidden_size, inner = config_.intermediate_size;
    const std::string gate = linear("mlp.gate_proj", normed, hidden, inner, spec_.mlp_bias);
    const std::string up = linear("mlp.up_proj", normed, hidden, inner, spec_.mlp_bias);
    const std::string product = b_.swiglu(layer_ + "mlp.swiglu", gate, up);
    return linear("mlp.down_proj", product, inner, hidden, spec_.mlp_bias);
  }

  const HfConfig& config_;
  const DecoderSpec& spec_;
  bool interleaved_;
  GraphBuilder b_;
  std::string layer_;  // "layers.<i>."
};

}  // namespace

ModelPlan plan_decoder(const HfConfig& config, const formats::TensorSource& source,
                       SourceNames names, const DecoderSpec& spec) {
  check_sizes(config);
  check_mathematics(config);
  return DecoderPlan(config, source, names, spec).run();
}

std::vector<int64_t> qwen_windows(const HfConfig& config) {
  if (!config.use_sliding_window.value_or(false)) {
    for (const std::string& type : config.layer_types) {
      if (type != "full_attention") {
        throw_bad_data(
            config.where,
            "layer_types has \"" + printable(type, 60) + "\", but use_sliding_window is not true",
            "make them agree");
      }
    }
    return {};
  }
  const int64_t window = config.raw.contains("sliding_window") ? config.sliding_window : 4096;
  std::vector<int64_t> windows;
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    bool slides = i >= config.max_window_layers.value_or(28);
    if (!config.layer_types.empty()) {
      const std::string& type = config.layer_types.at(static_cast<size_t>(i));
      slides = type == "sliding_attention";
      if (!slides && type != "full_attention") {
        throw_bad_data(config.where,
                       "layer_types has \"" + printable(type, 60) + "\", which is not supported",
                       "known: full_attention, sliding_attention");
      }
      if (slides && window == 0)
        throw_bad_data(config.where, "layer_types has sliding layers, but sliding_window is null");
    }
    windows.push_back(slides ? window : 0);
  }
  return windows;
}

}  // namespace loongforge::models
