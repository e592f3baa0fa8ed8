// The writing side of decoder_gguf.h.
#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "models/decoder_gguf.h"

namespace loongforge::models {
namespace {

using formats::HfConfig;

class ToGguf {
 public:
  ToGguf(const ir::Model& model, const HfConfig& config, std::string_view architecture,
         const DecoderSpec& spec)
      : model_(model), config_(config), spec_(spec), prefix_(std::string(architecture) + ".") {
    plan_.architecture = architecture;
  }

  GgufPlan run() {
    set("vocab_size", config_.vocab_size);
    set("context_length", context_length());
    set("embedding_length", config_.hidden_size);
    set("block_count", config_.num_hidden_layers);
    set("feed_forward_length", config_.intermediate_size);
    set("attention.head_count", config_.num_attention_heads);
    set("attention.head_count_kv", config_.num_key_value_heads);
    set("attention.layer_norm_rms_epsilon", config_.rms_norm_eps);
    set("attention.key_length", config_.head_dim);
    set("attention.value_length", config_.head_dim);
    set("rope.dimension_count", config_.rotary_dim());
    set("rope.freq_base", config_.rope.theta);
    rope_scaling();
    for (const ExportTensor& each : same_names(model_)) {
      plan_.tensors.push_back(
          {decoder_gguf_name(each.name), each.loongir, rotary_heads(each.name)});
    }
    return std::move(plan_);
  }

 private:
  template <class T>
  void set(const char* key, T value) {
    plan_.keys.emplace_back(prefix_ + key, formats::GgufValue{std::move(value)});
  }

  // GGUF files have no window of these layers: within its length the model never looks past one.
  int64_t context_length() {
    int64_t length = config_.max_position_embeddings;
    for (const int64_t window : spec_.windows) {
      if (window > 0) length = std::min(length, window);
    }
    if (length != config_.max_position_embeddings) {
      plan_.warnings.push_back(
          config_.where + ": GGUF files of architecture " + plan_.architecture +
          " have no sliding window: context_length is the window's " + std::to_string(length) +
          ", not the model's " + std::to_string(config_.max_position_embeddings) +
          "; beyond it readers would compute another model");
    }
    return length;
  }

  int64_t rotary_heads(const std::string& name) const {
    if (!spec_.gguf_interleaved) return 0;
    if (name.find(".self_attn.q_proj.") != std::string::npos) return config_.num_attention_heads;
    if (name.find(".self_attn.k_proj.") != std::string::npos) return config_.num_key_value_heads;
    return 0;
  }

  void rope_scaling() {
    const formats::RopeConfig& rope = config_.rope;
    const auto refuse = [&](const std::string& what) {
      throw_bad_data(config_.where, what + " has no form in GGUF files",
                     "export it with --export hf");
    };
    if (rope.type == "default") return;
    if (rope.type == "llama3") {
      // The divisors themselves; the keys that made them have no names in GGUF.
      std::vector<float> divisors;
      for (int64_t i = 0; i < config_.rotary_dim() / 2; ++i)
        divisors.push_back(static_cast<float>(llama3_divisor(rope, config_.rotary_dim(), i)));
      plan_.values.emplace_back(kGgufRopeFreqs, std::move(divisors));
      set("rope.scaling.original_context_length", rope.original_max_position_embeddings);
      return;
    }
    if (rope.type != "linear" && rope.type != "yarn") refuse("rope type \"" + rope.type + "\"");
    set("rope.scaling.type", rope.type);
    set("rope.scaling.factor", rope.factor);
    if (rope.type == "linear") return;
    // Readers of GGUF round the corrected dimensions and scale by 0.1 ln(factor) + 1.
    if (rope.attention_factor || rope.mscale || rope.mscale_all_dim)
      refuse("a yarn attention_factor or mscale of its own");
    if (!rope.truncate) refuse("yarn with truncate false");
    set("rope.scaling.original_context_length", rope.original_max_position_embeddings);
    set("rope.scaling.yarn_beta_fast", rope.beta_fast);
    set("rope.scaling.yarn_beta_slow", rope.beta_slow);
  }

  const ir::Model& model_;
  const HfConfig& config_;
  const DecoderSpec& spec_;
  std::string prefix_;
  GgufPlan plan_;
};

}  // namespace

GgufPlan decoder_to_gguf(const ir::Model& model, const HfConfig& config,
                         std::string_view architecture, const DecoderSpec& spec) {
  return ToGguf(model, config, architecture, spec).run();
}

}  // namespace loongforge::models
