// Qwen3 (dense): llama with an RMSNorm of each head of q and k, and a head_dim of its own; upper
// layers may have a sliding window.
#include "base/error.h"
#include "models/decoder.h"
#include "models/decoder_gguf.h"

namespace loongforge::models {
namespace {

constexpr std::string_view kModelTypes[] = {"qwen3"};
constexpr std::string_view kArchitectures[] = {"qwen3"};
constexpr std::string_view kLabels[] = {"qwen3", "qwen-3", "qwen/qwen3"};

DecoderSpec spec_of(const formats::HfConfig& config) {
  DecoderSpec spec;
  spec.qkv_bias = spec.o_bias = config.attention_bias;
  spec.qk_norm = true;
  spec.windows = qwen_windows(config);
  return spec;
}

// head_dim is not hidden_size / heads where the config says nothing, as elsewhere.
formats::HfConfig with_head_dim(formats::HfConfig config) {
  if (!config.raw.contains("head_dim")) config.head_dim = 128;
  return config;
}

ModelPlan plan_qwen3(const formats::HfConfig& config, const formats::TensorSource& source,
                     SourceNames names) {
  return plan_decoder(with_head_dim(config), source, names, spec_of(config));
}

GgufPlan to_gguf(const ir::Model& model, const formats::HfConfig& config) {
  if (config.attention_bias)
    throw_bad_data(config.where, "attention_bias has no GGUF form in this family");
  return decoder_to_gguf(model, with_head_dim(config), "qwen3", spec_of(config));
}

support::Json config_from_gguf(const formats::GgufFile& file) {
  support::Json config = decoder_config_from_gguf(file, "qwen3", "Qwen3ForCausalLM");
  config.set("attention_bias", file.find("blk.0.attn_q.bias") != nullptr);
  config.set("use_sliding_window", false);
  return config;
}

}  // namespace

extern const Family kQwen3;
const Family kQwen3{"qwen3",    kModelTypes,      kArchitectures, kLabels,
                    plan_qwen3, config_from_gguf, nullptr,        to_gguf};

}  // namespace loongforge::models
