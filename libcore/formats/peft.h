// PEFT LoRA adapters (adapter_config.json, adapter_model.safetensors), read and written.
// Thread-safety: values; const members may be called from several threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/api.h"
#include "formats/safetensors.h"
#include "support/json.h"

namespace loongforge::formats {

struct LF_API PeftConfig {
  std::string base_model_name_or_path;  // empty: null
  int64_t r = 8;
  double lora_alpha = 8.0;
  double lora_dropout = 0.0;
  bool use_rslora = false;
  // Which modules are adapted. Names: a module matches when it equals one or ends in ".<one>"; or a
  // regular expression for the whole path ("all-linear": every linear but the head), then
  // target_modules is empty.
  std::vector<std::string> target_modules;
  std::string target_regex;
  // With names, not empty: only in these layers; the index follows one of layers_pattern, or
  // any name.
  std::vector<int64_t> layers_to_transform;
  std::vector<std::string> layers_pattern;
  std::vector<std::string> exclude_modules;  // as target_modules
  std::string exclude_regex;
  // Keys are regular expressions for the end of the module path, as PEFT has them; the first that
  // matches counts.
  std::vector<std::pair<std::string, int64_t>> rank_pattern;
  std::vector<std::pair<std::string, double>> alpha_pattern;
  std::string task_type = "CAUSAL_LM";    // empty: null
  support::Json raw;                      // as read; null for a new one
  std::vector<std::string> unknown_keys;  // of the file, with a value: ignored, as PEFT does

  bool targets(std::string_view module) const;       // PEFT's rule over the keys above
  int64_t rank_of(std::string_view module) const;    // rank_pattern or r
  double alpha_of(std::string_view module) const;    // alpha_pattern or lora_alpha
  double scaling_of(std::string_view module) const;  // alpha / r, with rslora alpha / sqrt(r)
};

// kBadData Error naming file and key; what this program cannot honour (DoRA, modules_to_save, bias,
// ...) is refused by name.
LF_API PeftConfig parse_peft_config(support::Json raw, const std::string& where);
// A new one: all keys that PEFT writes for LORA, sorted. One that was read: its own keys, with what
// the fields above say.
LF_API support::Json peft_config_json(const PeftConfig& config);
// The same as the text of adapter_config.json.
LF_API std::string peft_config_text(const PeftConfig& config);

// One adapted module: W' = W + scaling * B A.
struct LF_API PeftModule {
  std::string module;  // the base model's module path, e.g. "model.layers.0.self_attn.q_proj"
  const StoredTensor* a = nullptr;  // [r, in]
  const StoredTensor* b = nullptr;  // [out, r]
  int64_t r = 0, in = 0, out = 0;
  double scaling = 0.0;
};

// Opening validates the configuration, every tensor's name, rank and shape against it, that A and B
// come in pairs, and that the configuration means each module. Tensors may carry the name that the
// adapter had in a live model (lora_A.default.weight), one for all.
class LF_API PeftAdapter {
 public:
  explicit PeftAdapter(const std::filesystem::path& folder);
  const PeftConfig& config() const noexcept { return config_; }
  const std::vector<PeftModule>& modules() const noexcept { return modules_; }  // by name
  const TensorSource& tensors() const noexcept { return *file_; }  // tensors().read_f32(*module.a)

 private:
  PeftConfig config_;
  std::unique_ptr<TensorSource> file_;
  std::vector<PeftModule> modules_;
};

// "base_model.model.<module>.lora_A.weight", or lora_B.
LF_API std::string peft_tensor_name(std::string_view module, bool a);

struct LF_API PeftWeights {
  std::string module;
  int64_t r = 0, in = 0, out = 0;
  const float* a = nullptr;  // [r, in]
  const float* b = nullptr;  // [out, r]
};

// Writes both files into an existing folder (a FolderWriter's temporary one). dtype: F32, BF16 or
// F16.
LF_API void write_peft(const std::filesystem::path& folder, const PeftConfig& config,
                       std::span<const PeftWeights> modules,
                       tensor::DType dtype = tensor::DType::kF32);

}  // namespace loongforge::formats
