// Qwen3 (dense): llama with an RMSNorm of each head of q and k, and a head_dim of its own; upper
// layers may have a sliding window.
#include "models/decoder.h"
#include "models/decoder_gguf.h"

namespace loongforge::models {
namespace {

constexpr std::string_view kModelTypes[] = {"qwen3"};
constexpr std::string_view kArchitectures[] = {"qwen3"};
constexpr std::string_view kLabels[] = {"qwen3", "qwen-3", "qwen/qwen3"};

ModelPlan plan_qwen3(const formats::HfConfig& config, const formats::TensorSource& source,
                     SourceNames names) {
  DecoderSpec spec;
  spec.qkv_bias = spec.o_bias = config.attention_bias;
  spec.qk_norm = true;
  spec.windows = qwen_windows(config);
  if (config.raw.contains("head_dim")) return plan_decoder(config, source, names, spec);
  formats::HfConfig with_default = config;
  with_default.head_dim = 128;  // not hidden_size / heads, as elsewhere
  return plan_decoder(with_default, source, names, spec);
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
                    plan_qwen3, config_from_gguf, nullptr};

}  // namespace loongforge::models
