#include "models/decoder_gguf.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "support/printable.h"

namespace loongforge::models {
namespace {

using formats::GgufFile;
using support::Json;

struct NamePair {
  std::string_view hugging_face, gguf;
};
constexpr NamePair kBlockNames[] = {
    {"input_layernorm.weight", "attn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.q_proj.bias", "attn_q.bias"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.k_proj.bias", "attn_k.bias"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.v_proj.bias", "attn_v.bias"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"},
    {"self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"self_attn.o_proj.bias", "attn_output.bias"},
    {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.gate_proj.bias", "ffn_gate.bias"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.up_proj.bias", "ffn_up.bias"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
    {"mlp.down_proj.bias", "ffn_down.bias"},
};
constexpr NamePair kOuterNames[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
};
constexpr std::string_view kLayers = "model.layers.";

// GGUF stores eps and theta as fp32; the number that was meant is the shortest one that reads back
// as that fp32 value.
double shortest(double value) {
  std::array<char, 64> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), static_cast<float>(value));
  double out = value;
  if (error == std::errc()) std::from_chars(text.data(), end, out);
  return out;
}

// Llama-3.x files carry no scaling keys but the divisors of each frequency. They are recognised by
// making them again.
Json rope_scaling_from_freqs(const GgufFile& file, const formats::StoredTensor& freqs,
                             const std::string& arch, double theta, int64_t head_dim) {
  if (freqs.elements() != head_dim / 2)
    throw_bad_data(freqs.where(), "does not hold one factor for each rotary pair");
  const std::vector<float> divisors = file.read_f32(freqs);
  double largest = 1.0;
  for (float divisor : divisors) largest = std::max(largest, static_cast<double>(divisor));
  if (largest == 1.0) return Json();
  const double stated = static_cast<double>(
      file.get_int(arch + ".rope.scaling.original_context_length").value_or(8192));
  for (double original : {stated, 8192.0}) {
    formats::RopeConfig scaling;
    scaling.theta = theta;
    scaling.factor = shortest(largest);
    scaling.low_freq_factor = 1.0;
    scaling.high_freq_factor = 4.0;
    scaling.original_max_position_embeddings = static_cast<int64_t>(original);
    bool same = true;
    for (size_t i = 0; i < divisors.size(); ++i) {
      const double expected = llama3_divisor(scaling, head_dim, static_cast<int64_t>(i));
      same = same && std::abs(static_cast<double>(divisors[i]) - expected) <= 1e-4 * expected;
    }
    if (!same) continue;
    Json json = Json::object();
    json.set("factor", scaling.factor);
    json.set("high_freq_factor", scaling.high_freq_factor);
    json.set("low_freq_factor", scaling.low_freq_factor);
    json.set("original_max_position_embeddings", scaling.original_max_position_embeddings);
    json.set("rope_type", "llama3");
    return json;
  }
  throw_bad_data(freqs.where(), "holds frequency factors that are not those of llama3 rope scaling",
                 "convert from the Hugging Face folder of this model");
}

// A key whose presence with another value than `neutral` changes the mathematics.
void refuse_unless(const GgufFile& file, const std::string& key, double neutral) {
  const auto value = file.get_double(key);
  if (value && *value != neutral)
    throw_bad_data(file.path().string(), key + " is not supported",
                   "convert from the Hugging Face folder of this model");
}

Json rope_scaling_from_gguf(const GgufFile& file, const std::string& arch, double theta,
                            int64_t head_dim) {
  if (const formats::StoredTensor* freqs = file.find(kGgufRopeFreqs))
    return rope_scaling_from_freqs(file, *freqs, arch, theta, head_dim);
  const std::string scaling = arch + ".rope.scaling.";
  const std::string* named = file.get_string(scaling + "type");
  const auto old_linear = file.get_double(arch + ".rope.scale_linear");
  const std::string type = named != nullptr ? *named : old_linear ? "linear" : "none";
  if (type == "none") return Json();
  if (type != "linear" && type != "yarn")
    throw_bad_data(file.path().string(),
                   scaling + "type \"" + support::printable(type, 60) + "\" is not supported",
                   "known: none, linear, yarn");
  for (const char* key : {"attn_factor", "yarn_ext_factor", "yarn_attn_factor"})
    refuse_unless(file, scaling + key, 1.0);
  refuse_unless(file, scaling + "yarn_log_multiplier", 0.0);
  const auto factor = file.get_double(scaling + "factor");
  Json json = Json::object();
  if (type == "yarn") {
    if (const auto beta = file.get_double(scaling + "yarn_beta_fast"))
      json.set("beta_fast", shortest(*beta));
    if (const auto beta = file.get_double(scaling + "yarn_beta_slow"))
      json.set("beta_slow", shortest(*beta));
  }
  json.set("factor", shortest(factor       ? *factor
                              : old_linear ? *old_linear
                                           : file.require_double(scaling + "factor")));
  if (type == "yarn") {
    json.set("original_max_position_embeddings",
             file.require_int(scaling + "original_context_length"));
  }
  json.set("rope_type", type);
  return json;
}

void set_token(Json* config, const GgufFile& file, const char* key, const char* gguf_key) {
  const auto id = file.get_int(gguf_key);
  config->set(key, id ? Json(*id) : Json());
}

}  // namespace

double llama3_divisor(const formats::RopeConfig& rope, int64_t head_dim, int64_t i) {
  const double inv =
      std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
  const double wavelength = 2.0 * std::numbers::pi / inv;
  const auto original = static_cast<double>(rope.original_max_position_embeddings);
  if (wavelength < original / rope.high_freq_factor) return 1.0;
  if (wavelength > original / rope.low_freq_factor) return rope.factor;
  const double smooth = (original / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return 1.0 / ((1.0 - smooth) / rope.factor + smooth);
}

std::string decoder_gguf_name(const std::string& name) {
  for (const NamePair& pair : kOuterNames) {
    if (name == pair.hugging_face) return std::string(pair.gguf);
  }
  if (name.starts_with(kLayers)) {
    const size_t dot = name.find('.', kLayers.size());  // "model.layers.<N>.<rest>"
    for (const NamePair& pair : kBlockNames) {
      if (dot != std::string::npos && name.substr(dot + 1) == pair.hugging_face) {
        return "blk." + name.substr(kLayers.size(), dot - kLayers.size()) + "." +
               std::string(pair.gguf);
      }
    }
  }
  throw_failed(name, "has no GGUF name");
}

bool is_gguf_buffer(std::string_view name) { return name == kGgufRopeFreqs; }

Json decoder_config_from_gguf(const GgufFile& file, std::string_view model_type,
                              std::string_view architecture) {
  const std::string arch = file.require_string("general.architecture");
  const auto key = [&arch](const char* name) { return arch + "." + name; };
  const int64_t heads = file.require_int(key("attention.head_count"));
  const int64_t hidden = file.require_int(key("embedding_length"));
  if (heads < 1)
    throw_bad_data(file.path().string(), key("attention.head_count") + " is not positive");
  const int64_t head_dim = file.get_int(key("attention.key_length")).value_or(hidden / heads);
  const int64_t rotary = file.get_int(key("rope.dimension_count")).value_or(head_dim);
  if (rotary != head_dim ||
      file.get_int(key("attention.value_length")).value_or(head_dim) != head_dim) {
    throw_bad_data(file.path().string(), "rotary, key and value dimensions differ, which " +
                                             std::string(model_type) + " does not have");
  }
  if (file.get_int(key("expert_count")).value_or(0) != 0) {
    throw_bad_data(file.path().string(), "is a mixture of experts, which is not supported");
  }
  refuse_unless(file, key("attention.sliding_window"), 0.0);
  const double theta = shortest(file.get_double(key("rope.freq_base")).value_or(10000.0));
  const formats::StoredTensor& embedding = file.at("token_embd.weight");

  Json config = Json::object();
  Json architectures = Json::array();
  architectures.push_back(architecture);
  config.set("architectures", std::move(architectures));
  config.set("attention_dropout", 0.0);
  set_token(&config, file, "bos_token_id", "tokenizer.ggml.bos_token_id");
  set_token(&config, file, "eos_token_id", "tokenizer.ggml.eos_token_id");
  config.set("head_dim", head_dim);
  config.set("hidden_act", "silu");
  config.set("hidden_size", hidden);
  config.set("initializer_range", 0.02);
  config.set("intermediate_size", file.require_int(key("feed_forward_length")));
  config.set("max_position_embeddings", file.require_int(key("context_length")));
  config.set("model_type", model_type);
  config.set("num_attention_heads", heads);
  config.set("num_hidden_layers", file.require_int(key("block_count")));
  config.set("num_key_value_heads", file.get_int(key("attention.head_count_kv")).value_or(heads));
  set_token(&config, file, "pad_token_id", "tokenizer.ggml.padding_token_id");
  config.set("rms_norm_eps",
             shortest(file.require_double(key("attention.layer_norm_rms_epsilon"))));
  config.set("rope_scaling", rope_scaling_from_gguf(file, arch, theta, head_dim));
  config.set("rope_theta", theta);
  config.set("tie_word_embeddings", file.find("output.weight") == nullptr);
  config.set("torch_dtype", "bfloat16");
  config.set("use_cache", true);
  config.set("vocab_size", embedding.rows());
  return config;
}

}  // namespace loongforge::models
