// config.json and generation_config.json of decoder models, in the spelling of transformers v4 or
// v5, as plain values. Thread-safety: values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/api.h"
#include "support/json.h"
#include "tensor/dtype.h"

namespace loongforge::formats {

// Rotary embedding. Values that the type does not use are at their defaults; those it needs have
// been checked.
struct LF_API RopeConfig {
  std::string type = "default";  // default linear dynamic yarn longrope llama3
  double theta = 10000.0;
  double partial_rotary_factor = 1.0;
  double factor = 1.0;  // linear dynamic yarn longrope llama3
  int64_t original_max_position_embeddings =
      0;  // yarn longrope llama3; where the file has none: max_position_embeddings
  double low_freq_factor = 1.0, high_freq_factor = 1.0;  // llama3
  std::optional<double> attention_factor;                // yarn longrope
  double beta_fast = 32.0, beta_slow = 1.0;              // yarn
  std::optional<double> mscale, mscale_all_dim;          // yarn
  bool truncate = true;                                  // yarn
  std::vector<double> short_factor, long_factor;         // longrope: rotary_dim / 2 each

  // The dictionary as transformers v5 writes it, with rope_type and only the keys that the type
  // uses.
  support::Json to_json() const;
};

struct LF_API HfConfig {
  std::string where;  // for errors: the path of config.json
  support::Json raw;  // as read, for pass-through
  bool v5 = false;    // spelled as transformers v5 does (rope_parameters or dtype)

  std::string model_type;    // empty when the file has none
  std::string architecture;  // architectures[0]; empty when the file has none
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, num_hidden_layers = 0;
  int64_t num_attention_heads = 0, num_key_value_heads = 0,
          head_dim = 0;  // null or absent ones are filled in
  int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  std::string hidden_act = "silu";
  bool tie_word_embeddings = false;
  bool attention_bias = false, mlp_bias = false;
  double attention_dropout = 0.0;
  int64_t sliding_window = 0;  // 0: absent or null; whether and where it counts, the family says
  std::optional<bool> use_sliding_window;
  std::optional<int64_t> max_window_layers;
  std::vector<std::string> layer_types;               // empty when the file has none
  std::optional<int64_t> bos_token_id, pad_token_id;  // a negative pad counts as none
  std::vector<int64_t> eos_token_ids;  // the file's int or list; empty when it has none
  std::optional<tensor::DType> dtype;  // torch_dtype or dtype
  RopeConfig rope;
  std::string quant_method;  // quantization_config.quant_method; empty when there is none

  int64_t rotary_dim() const;  // head_dim * partial_rotary_factor
};

// model_type alone, before the keys that only a decoder has are asked for; empty when the file has
// none.
LF_API std::string model_type_of(const support::Json& raw, const std::string& where);
// kBadData Error naming file and key (and both values where two keys contradict each other).
LF_API HfConfig parse_hf_config(support::Json raw, std::string where);
LF_API HfConfig read_hf_config(const std::filesystem::path& config_json);

struct LF_API GenerationConfig {
  support::Json raw;
  std::optional<int64_t> bos_token_id, pad_token_id;
  std::vector<int64_t> eos_token_ids;
};

LF_API GenerationConfig parse_generation_config(support::Json raw, std::string where);
// Nothing when the file does not exist.
LF_API std::optional<GenerationConfig> read_generation_config(
    const std::filesystem::path& generation_config_json);

}  // namespace loongforge::formats
