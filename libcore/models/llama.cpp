// Llama-2, Llama-3.x (with its rope scaling) and SmolLM2: model_type "llama". Biases where
// attention_bias and mlp_bias say so. GGUF files of this family hold the rows of q and k in pairs
// (i, i + head_dim / 2), as their interleaved rotation wants them.
#include "models/decoder.h"
#include "models/decoder_gguf.h"

namespace loongforge::models {
namespace {

constexpr std::string_view kModelTypes[] = {"llama"};
constexpr std::string_view kArchitectures[] = {"llama"};
constexpr std::string_view kLabels[] = {"llama", "meta-llama", "smollm"};

DecoderSpec spec_of(const formats::HfConfig& config) {
  DecoderSpec spec;
  spec.qkv_bias = spec.o_bias = config.attention_bias;
  spec.mlp_bias = config.mlp_bias;
  spec.gguf_interleaved = true;
  return spec;
}

ModelPlan plan_llama(const formats::HfConfig& config, const formats::TensorSource& source,
                     SourceNames names) {
  return plan_decoder(config, source, names, spec_of(config));
}

GgufPlan to_gguf(const ir::Model& model, const formats::HfConfig& config) {
  return decoder_to_gguf(model, config, "llama", spec_of(config));
}

support::Json config_from_gguf(const formats::GgufFile& file) {
  support::Json config = decoder_config_from_gguf(file, "llama", "LlamaForCausalLM");
  config.set("attention_bias", file.find("blk.0.attn_q.bias") != nullptr);
  config.set("mlp_bias", file.find("blk.0.ffn_gate.bias") != nullptr);
  return config;
}

}  // namespace

extern const Family kLlama;
const Family kLlama{"llama",    kModelTypes,      kArchitectures, kLabels,
                    plan_llama, config_from_gguf, nullptr,        to_gguf};

}  // namespace loongforge::models
