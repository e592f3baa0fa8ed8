// Mistral: llama without biases, every layer with a sliding window where config.json has one. Its
// GGUF files are of architecture "llama", which has no window: as llama they are read.
#include "models/decoder.h"
#include "models/decoder_gguf.h"

namespace loongforge::models {
namespace {

constexpr std::string_view kModelTypes[] = {"mistral"};
constexpr std::string_view kArchitectures[] = {"llama"};
constexpr std::string_view kLabels[] = {"mistral"};

DecoderSpec spec_of(const formats::HfConfig& config) {
  // transformers' default where the key is absent; null says none.
  const int64_t window = config.raw.contains("sliding_window") ? config.sliding_window : 4096;
  DecoderSpec spec;
  spec.windows.assign(static_cast<size_t>(config.num_hidden_layers), window);
  spec.gguf_interleaved = true;
  return spec;
}

ModelPlan plan_mistral(const formats::HfConfig& config, const formats::TensorSource& source,
                       SourceNames names) {
  return plan_decoder(config, source, names, spec_of(config));
}

GgufPlan to_gguf(const ir::Model& model, const formats::HfConfig& config) {
  return decoder_to_gguf(model, config, "llama", spec_of(config));
}

}  // namespace

extern const Family kMistral;
const Family kMistral{"mistral",    kModelTypes, kArchitectures, kLabels,
                      plan_mistral, nullptr,     nullptr,        to_gguf};

}  // namespace loongforge::models
