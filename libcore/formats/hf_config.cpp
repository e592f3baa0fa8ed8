#include "formats/hf_config.h"

#include <utility>

#include "base/paths.h"
#include "formats/hf_rope.h"
#include "formats/json_keys.h"

namespace loongforge::formats {

using support::Json;
using support::printable;

namespace {

std::optional<tensor::DType> dtype_of(const Keys& keys, const char* key) {
  std::string name = keys.string(key, "auto");
  if (name.rfind("torch.", 0) == 0) name.erase(0, 6);
  if (name == "auto") return std::nullopt;
  if (name == "bfloat16") return tensor::DType::kBF16;
  if (name == "float16") return tensor::DType::kF16;
  if (name == "float32") return tensor::DType::kF32;
  if (name == "float64") return tensor::DType::kF64;
  if (name == "float8_e4m3fn") return tensor::DType::kF8E4M3;
  keys.fail(key, "is \"" + printable(name, 40) + "\"", "known: float32, bfloat16, float16");
}

void check_vocabulary(const Keys& keys, const HfConfig& config, const char* key, int64_t id) {
  if (id < 0 || id >= config.vocab_size) {
    keys.fail(key, "is " + std::to_string(id) + ", but vocab_size is " +
                       std::to_string(config.vocab_size));
  }
}

void parse_sizes(const Keys& keys, HfConfig& config) {
  config.vocab_size = keys.required_size("vocab_size");
  config.hidden_size = keys.required_size("hidden_size");
  config.intermediate_size = keys.required_size("intermediate_size");
  config.num_hidden_layers = keys.required_size("num_hidden_layers");
  config.num_attention_heads = keys.required_size("num_attention_heads");
  config.max_position_embeddings = keys.required_size("max_position_embeddings");
  config.num_key_value_heads =
      keys.size("num_key_value_heads").value_or(config.num_attention_heads);
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    keys.fail("num_attention_heads", "is " + std::to_string(config.num_attention_heads) +
                                         ", no multiple of num_key_value_heads, which is " +
                                         std::to_string(config.num_key_value_heads));
  }
  if (const std::optional<int64_t> head_dim = keys.size("head_dim")) {
    config.head_dim = *head_dim;
  } else {
    if (config.hidden_size % config.num_attention_heads != 0) {
      keys.fail("hidden_size", "is " + std::to_string(config.hidden_size) +
                                   ", no multiple of num_attention_heads, which is " +
                                   std::to_string(config.num_attention_heads) +
                                   ", and there is no head_dim");
    }
    config.head_dim = config.hidden_size / config.num_attention_heads;
  }
}

void parse_tokens(const Keys& keys, HfConfig& config) {
  config.bos_token_id = keys.integer("bos_token_id");
  if (config.bos_token_id) check_vocabulary(keys, config, "bos_token_id", *config.bos_token_id);
  config.eos_token_ids = keys.ids("eos_token_id");
  for (int64_t id : config.eos_token_ids) check_vocabulary(keys, config, "eos_token_id", id);
  // Old Llama-2 files say -1 for none. Whether a pad fits the vocabulary is judged with the
  // tokenizer, which may correct it.
  config.pad_token_id = keys.integer("pad_token_id");
  if (config.pad_token_id && *config.pad_token_id < 0) config.pad_token_id.reset();
}

void parse_attention(const Keys& keys, HfConfig& config) {
  config.attention_bias = keys.boolean("attention_bias", false);
  config.mlp_bias = keys.boolean("mlp_bias", false);
  config.attention_dropout = keys.number("attention_dropout").value_or(0.0);
  if (!(config.attention_dropout >= 0.0 && config.attention_dropout < 1.0)) {
    keys.fail("attention_dropout", "is not between 0 and 1");
  }
  config.sliding_window = keys.size("sliding_window").value_or(0);
  if (keys.find("use_sliding_window") != nullptr)
    config.use_sliding_window = keys.boolean("use_sliding_window", false);
  config.max_window_layers = keys.integer("max_window_layers");
  if (config.max_window_layers.value_or(0) < 0) keys.fail("max_window_layers", "is negative");
  config.layer_types = keys.strings("layer_types");
  if (!config.layer_types.empty() &&
      config.layer_types.size() != static_cast<size_t>(config.num_hidden_layers)) {
    keys.fail("layer_types", "has " + std::to_string(config.layer_types.size()) +
                                 " entries, but num_hidden_layers is " +
                                 std::to_string(config.num_hidden_layers));
  }
}

}  // namespace

std::string model_type_of(const Json& raw, const std::string& where) {
  if (!raw.is_object())
    throw_bad_data(where, std::string("is JSON of type ") + raw.type_name() + ", not an object");
  return Keys(raw, where).string("model_type", "");
}

HfConfig parse_hf_config(Json raw, std::string where) {
  HfConfig config;
  config.where = std::move(where);
  config.model_type = model_type_of(raw, config.where);
  const Keys keys(raw, config.where);
  config.v5 = keys.find("rope_parameters") != nullptr || keys.find("dtype") != nullptr;
  const std::vector<std::string> architectures = keys.strings("architectures");
  if (!architectures.empty()) config.architecture = architectures[0];
  parse_sizes(keys, config);
  const std::optional<double> eps = keys.number("rms_norm_eps");
  if (eps && !(*eps >= 0.0 && *eps < 1.0))
    keys.fail("rms_norm_eps", "is " + shown(Json(*eps)) + ", not between 0 and 1");
  config.rms_norm_eps = eps.value_or(1e-6);
  config.hidden_act = keys.string("hidden_act", "silu");
  config.tie_word_embeddings = keys.boolean("tie_word_embeddings", false);
  parse_attention(keys, config);
  parse_tokens(keys, config);
  const std::optional<tensor::DType> torch_dtype = dtype_of(keys, "torch_dtype"),
                                     dtype = dtype_of(keys, "dtype");
  if (torch_dtype && dtype && *torch_dtype != *dtype) {
    keys.fail("torch_dtype",
              "is " + shown(raw.at("torch_dtype")) + ", but dtype is " + shown(raw.at("dtype")),
              "make them equal or remove one");
  }
  config.dtype = torch_dtype ? torch_dtype : dtype;
  config.rope = parse_rope(raw, config);
  if (const Json* quantization = keys.find("quantization_config")) {
    if (!quantization->is_object())
      keys.fail("quantization_config", "is " + shown(*quantization) + ", not an object");
    config.quant_method =
        Keys(*quantization, config.where, "quantization_config.").string("quant_method", "unknown");
  }
  config.raw = std::move(raw);
  return config;
}

HfConfig read_hf_config(const std::filesystem::path& config_json) {
  return parse_hf_config(support::read_json(config_json.string()), config_json.string());
}

int64_t HfConfig::rotary_dim() const {
  return static_cast<int64_t>(static_cast<double>(head_dim) * rope.partial_rotary_factor);
}

GenerationConfig parse_generation_config(Json raw, std::string where) {
  if (!raw.is_object())
    throw_bad_data(std::move(where),
                   std::string("is JSON of type ") + raw.type_name() + ", not an object");
  GenerationConfig config;
  const Keys keys(raw, where);
  config.bos_token_id = keys.integer("bos_token_id");
  config.eos_token_ids = keys.ids("eos_token_id");
  config.pad_token_id = keys.integer("pad_token_id");
  if (config.pad_token_id && *config.pad_token_id < 0) config.pad_token_id.reset();
  config.raw = std::move(raw);
  return config;
}

std::optional<GenerationConfig> read_generation_config(
    const std::filesystem::path& generation_config_json) {
  if (!path_exists(generation_config_json)) return std::nullopt;
  return parse_generation_config(support::read_json(generation_config_json.string()),
                                 generation_config_json.string());
}

}  // namespace loongforge::formats
