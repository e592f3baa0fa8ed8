// Qwen2 and Qwen2.5: llama with biases of q, k and v; upper layers may have a sliding window.
#include "models/decoder.h"
#include "models/decoder_gguf.h"

namespace loongforge::models {
namespace {

constexpr std::string_view kModelTypes[] = {"qwen2"};
constexpr std::string_view kArchitectures[] = {"qwen2"};
constexpr std::string_view kLabels[] = {"qwen2", "qwen-2", "qwen/qwen2"};

DecoderSpec spec_of(const formats::HfConfig& config) {
  DecoderSpec spec;
  spec.qkv_bias = true;
  spec.windows = qwen_windows(config);
  return spec;
}

ModelPlan plan_qwen2(const formats::HfConfig& config, const formats::TensorSource& source,
                     SourceNames names) {
  return plan_decoder(config, source, names, spec_of(config));
}

GgufPlan to_gguf(const ir::Model& model, const formats::HfConfig& config) {
  return decoder_to_gguf(model, config, "qwen2", spec_of(config));
}

support::Json config_from_gguf(const formats::GgufFile& file) {
  support::Json config = decoder_config_from_gguf(file, "qwen2", "Qwen2ForCausalLM");
  config.set("use_sliding_window", false);
  return config;
}

}  // namespace

extern const Family kQwen2;
const Family kQwen2{"qwen2",    kModelTypes,      kArchitectures, kLabels,
                    plan_qwen2, config_from_gguf, nullptr,        to_gguf};

}  // namespace loongforge::models
