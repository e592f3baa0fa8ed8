// Llama-2, Llama-3.x (with its rope scaling) and SmolLM2: model_type "llama".
//
//   x += o(attention(rope(q(norm(x))), rope(k(norm(x))), v(norm(x))))
//   x += down(silu(gate(norm(x))) * up(norm(x)))
//
// GGUF files of this family hold the rows of q and k in pairs (i, i + head_dim / 2), as their
// interleaved rotation wants them; LoongIR has Hugging Face's order (first half, second half).
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "models/builder.h"
#include "models/registry.h"

namespace loongforge::models {
namespace {

using support::Json;

constexpr std::string_view kModelTypes[] = {"llama"};
constexpr std::string_view kArchitectures[] = {"llama"};
constexpr std::string_view kLabels[] = {"llama", "meta-llama", "smollm"};

constexpr std::string_view kRopeFreqs = "rope_freqs.weight";

// ---- names ----

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

std::string gguf_name(const std::string& name) {
  for (const NamePair& pair : kOuterNames) {
    if (name == pair.hugging_face) return std::string(pair.gguf);
  }
  const size_t dot = name.find('.', kLayers.size());  // "model.layers.<N>.<rest>"
  for (const NamePair& pair : kBlockNames) {
    if (name.substr(dot + 1) == pair.hugging_face) {
      return "blk." + name.substr(kLayers.size(), dot - kLayers.size()) + "." +
             std::string(pair.gguf);
    }
  }
  throw_failed(name, "has no GGUF name");
}

// ---- the graph ----

void check_config(const formats::HfConfig& config) {
  const auto need = [&config](int64_t value, const char* key) {
    if (value < 1) throw_bad_data(config.where, std::string(key) + " is absent or not positive");
  };
  need(config.vocab_size, "vocab_size");
  need(config.hidden_size, "hidden_size");
  need(config.intermediate_size, "intermediate_size");
  need(config.num_hidden_layers, "num_hidden_layers");
  need(config.num_attention_heads, "num_attention_heads");
  need(config.num_key_value_heads, "num_key_value_heads");
  need(config.head_dim, "head_dim");
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    throw_bad_data(config.where, "num_attention_heads is no multiple of num_key_value_heads");
  }
  if (config.head_dim % 2 != 0)
    throw_bad_data(config.where, "head_dim is odd, rotary embedding needs pairs");
  // The shapes of q, k, v and o are products of these two.
  constexpr int64_t kMost = int64_t{1} << 30;
  if (config.head_dim > kMost || config.num_attention_heads > kMost) {
    throw_bad_data(config.where, "num_attention_heads or head_dim is not possible");
  }
  if (config.hidden_act != "silu") {
    throw_bad_data(config.where,
                   "hidden_act \"" + config.hidden_act + "\" is not supported for llama",
                   "known: silu");
  }
  if (!config.quant_method.empty()) {
    throw_bad_data(
        config.where,
        "the checkpoint is quantised (" + config.quant_method + "), which cannot be read",
        "take the bf16 or fp16 checkpoint of this model");
  }
  if (config.rope.type != "default" && config.rope.type != "llama3") {
    throw_bad_data(config.where,
                   "rope type \"" + config.rope.type + "\" is not supported for llama",
                   "known: default, llama3");
  }
  if (config.rotary_dim() != config.head_dim) {
    throw_bad_data(config.where, "partial_rotary_factor other than 1 is not supported for llama");
  }
}

bool is_old_buffer(std::string_view name) { return name.ends_with("rotary_emb.inv_freq"); }

ModelPlan plan_llama(const formats::HfConfig& config, const formats::TensorSource& source,
                     SourceNames names) {
  check_config(config);
  const bool gguf = names == SourceNames::kGguf;
  GraphBuilder b(config, source,
                 [gguf](const std::string& name) { return gguf ? gguf_name(name) : name; });
  b.ignore(
      [gguf](std::string_view name) { return gguf ? name == kRopeFreqs : is_old_buffer(name); });

  const int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  const int64_t heads = config.num_attention_heads, kv_heads = config.num_key_value_heads;
  const int64_t q_size = heads * config.head_dim, kv_size = kv_heads * config.head_dim;
  const double scale = 1.0 / std::sqrt(static_cast<double>(config.head_dim));
  const bool attn_bias = config.attention_bias, mlp_bias = config.mlp_bias;

  std::string x =
      b.embedding("embed_tokens", "model.embed_tokens.weight", config.vocab_size, hidden);
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    b.set_block(static_cast<int>(i));
    const std::string node = "layers." + std::to_string(i) + ".";
    const std::string weights = "model." + node;
    const std::string normed =
        b.rms_norm(node + "input_layernorm", x, weights + "input_layernorm.weight", hidden,
                   config.rms_norm_eps);
    const auto projection = [&](const std::string& name, const std::string& input, int64_t in,
                                int64_t out, bool bias, int64_t rotary_heads) {
      return b.linear(node + name, input, weights + name, in, out, bias, gguf ? rotary_heads : 0);
    };
    const std::string q = projection("self_attn.q_proj", normed, hidden, q_size, attn_bias, heads);
    const std::string k =
        projection("self_attn.k_proj", normed, hidden, kv_size, attn_bias, kv_heads);
    const std::string v = projection("self_attn.v_proj", normed, hidden, kv_size, attn_bias, 0);
    const std::string q_rope = b.rope(node + "self_attn.q_rope", q, heads);
    const std::string k_rope = b.rope(node + "self_attn.k_rope", k, kv_heads);
    const std::string mixed = b.attention(node + "self_attn.attention", q_rope, k_rope, v, scale);
    const std::string o = projection("self_attn.o_proj", mixed, q_size, hidden, attn_bias, 0);
    x = b.add(node + "self_attn.residual", x, o);
    const std::string normed2 =
        b.rms_norm(node + "post_attention_layernorm", x,
                   weights + "post_attention_layernorm.weight", hidden, config.rms_norm_eps);
    const std::string gate = projection("mlp.gate_proj", normed2, hidden, inner, mlp_bias, 0);
    const std::string up = projection("mlp.up_proj", normed2, hidden, inner, mlp_bias, 0);
    const std::string product = b.swiglu(node + "mlp.swiglu", gate, up);
    const std::string down = projection("mlp.down_proj", product, inner, hidden, mlp_bias, 0);
    x = b.add(node + "mlp.residual", x, down);
  }
  b.set_block(-1);
  x = b.rms_norm("norm", x, "model.norm.weight", hidden, config.rms_norm_eps);
  if (config.tie_word_embeddings) {
    b.tied_linear("lm_head", x, "model.embed_tokens.weight", hidden, config.vocab_size);
    b.alias("lm_head.weight", "model.embed_tokens.weight");
  } else {
    b.linear("lm_head", x, "lm_head", hidden, config.vocab_size, false);
  }
  return b.finish();
}

// ---- config.json from GGUF keys ----

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

struct Llama3Scaling {
  double factor, low, high, original;
};

// What llama3 scaling divides frequency i by.
double llama3_divisor(const Llama3Scaling& s, double theta, int64_t head_dim, int64_t i) {
  const double inv = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
  const double wavelength = 2.0 * std::numbers::pi / inv;
  if (wavelength < s.original / s.high) return 1.0;
  if (wavelength > s.original / s.low) return s.factor;
  const double smooth = (s.original / wavelength - s.low) / (s.high - s.low);
  return 1.0 / ((1.0 - smooth) / s.factor + smooth);
}

// Llama-3.x files carry no scaling keys but the divisors of each frequency. They are recognised by
// making them again.
Json rope_scaling_from_freqs(const formats::GgufFile& file, const formats::StoredTensor& freqs,
                             double theta, int64_t head_dim) {
  if (freqs.elements() != head_dim / 2)
    throw_bad_data(freqs.where(), "does not hold one factor for each rotary pair");
  const std::vector<float> divisors = file.read_f32(freqs);
  double largest = 1.0;
  for (float divisor : divisors) largest = std::max(largest, static_cast<double>(divisor));
  if (largest == 1.0) return Json();
  const double stated = static_cast<double>(
      file.get_int("llama.rope.scaling.original_context_length").value_or(8192));
  for (double original : {stated, 8192.0}) {
    const Llama3Scaling scaling{shortest(largest), 1.0, 4.0, original};
    bool same = true;
    for (size_t i = 0; i < divisors.size(); ++i) {
      const double expected = llama3_divisor(scaling, theta, head_dim, static_cast<int64_t>(i));
      same = same && std::abs(static_cast<double>(divisors[i]) - expected) <= 1e-4 * expected;
    }
    if (!same) continue;
    Json json = Json::object();
    json.set("factor", scaling.factor);
    json.set("high_freq_factor", scaling.high);
    json.set("low_freq_factor", scaling.low);
    json.set("original_max_position_embeddings", static_cast<int64_t>(scaling.original));
    json.set("rope_type", "llama3");
    return json;
  }
  throw_bad_data(freqs.where(), "holds frequency factors that are not those of llama3 rope scaling",
                 "convert from the Hugging Face folder of this model");
}

Json rope_scaling_from_gguf(const formats::GgufFile& file, double theta, int64_t head_dim) {
  if (const formats::StoredTensor* freqs = file.find(kRopeFreqs))
    return rope_scaling_from_freqs(file, *freqs, theta, head_dim);
  const std::string* type = file.get_string("llama.rope.scaling.type");
  if (type == nullptr || *type == "none") return Json();
  throw_bad_data(file.path().string(),
                 "llama.rope.scaling.type \"" + *type + "\" is not supported");
}

void set_token(Json* config, const formats::GgufFile& file, const char* key, const char* gguf_key) {
  const auto id = file.get_int(gguf_key);
  config->set(key, id ? Json(*id) : Json());
}

Json llama_config_from_gguf(const formats::GgufFile& file) {
  const int64_t heads = file.require_int("llama.attention.head_count");
  const int64_t hidden = file.require_int("llama.embedding_length");
  if (heads < 1) throw_bad_data(file.path().string(), "llama.attention.head_count is not positive");
  const int64_t head_dim = file.get_int("llama.attention.key_length").value_or(hidden / heads);
  const int64_t rotary = file.get_int("llama.rope.dimension_count").value_or(head_dim);
  if (rotary != head_dim ||
      file.get_int("llama.attention.value_length").value_or(head_dim) != head_dim) {
    throw_bad_data(file.path().string(),
                   "rotary, key and value dimensions differ, which llama does not have");
  }
  if (file.get_int("llama.expert_count").value_or(0) != 0) {
    throw_bad_data(file.path().string(), "is a mixture of experts, which is not supported");
  }
  const double theta = shortest(file.get_double("llama.rope.freq_base").value_or(10000.0));
  const formats::StoredTensor& embedding = file.at("token_embd.weight");

  Json config = Json::object();
  Json architectures = Json::array();
  architectures.push_back("LlamaForCausalLM");
  config.set("architectures", std::move(architectures));
  config.set("attention_bias", file.find("blk.0.attn_q.bias") != nullptr);
  config.set("attention_dropout", 0.0);
  set_token(&config, file, "bos_token_id", "tokenizer.ggml.bos_token_id");
  set_token(&config, file, "eos_token_id", "tokenizer.ggml.eos_token_id");
  config.set("head_dim", head_dim);
  config.set("hidden_act", "silu");
  config.set("hidden_size", hidden);
  config.set("initializer_range", 0.02);
  config.set("intermediate_size", file.require_int("llama.feed_forward_length"));
  config.set("max_position_embeddings", file.require_int("llama.context_length"));
  config.set("mlp_bias", file.find("blk.0.ffn_gate.bias") != nullptr);
  config.set("model_type", "llama");
  config.set("num_attention_heads", heads);
  config.set("num_hidden_layers", file.require_int("llama.block_count"));
  config.set("num_key_value_heads", file.get_int("llama.attention.head_count_kv").value_or(heads));
  set_token(&config, file, "pad_token_id", "tokenizer.ggml.padding_token_id");
  config.set("rms_norm_eps",
             shortest(file.require_double("llama.attention.layer_norm_rms_epsilon")));
  config.set("rope_scaling", rope_scaling_from_gguf(file, theta, head_dim));
  config.set("rope_theta", theta);
  config.set("tie_word_embeddings", file.find("output.weight") == nullptr);
  config.set("torch_dtype", "bfloat16");
  config.set("use_cache", true);
  config.set("vocab_size", embedding.rows());
  return config;
}

}  // namespace

extern const Family kLlama;
const Family kLlama{
    "llama", kModelTypes, kArchitectures, kLabels, plan_llama, llama_config_from_gguf, nullptr,
};

}  // namespace loongforge::models
