#include "models/decoder_gguf.h"

#include <cmath>

#include "formats/gguf.h"
#include "models/models_support.h"
#include "support/temp_dir.h"

using namespace loongforge;
using support::Json;

namespace {

test::GgufBuilder small_gguf(float theta, const std::string& arch = "llama") {
  test::GgufBuilder b;
  b.text("general.architecture", arch);
  b.u32(arch + ".context_length", 131072);
  b.u32(arch + ".embedding_length", 256);
  b.u32(arch + ".block_count", 1);
  b.u32(arch + ".feed_forward_length", 8);
  b.u32(arch + ".attention.head_count", 2);
  b.u32(arch + ".attention.head_count_kv", 1);
  b.f32(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
  b.f32(arch + ".rope.freq_base", theta);
  b.u32("tokenizer.ggml.eos_token_id", 3);
  b.tensor("token_embd.weight", 0, {5, 2}, std::vector<uint8_t>(40));
  return b;
}

Json config_of(const test::GgufBuilder& builder, const char* arch = "llama") {
  const test::TempDir dir;
  test::write_file(dir / "m.gguf", builder.bytes());
  const formats::GgufFile file(dir / "m.gguf");
  return models::find_by_gguf_architecture(arch)->config_from_gguf(file);
}

// What Llama-3.1's converter writes: theta 5e5, head_dim 128, factor 8, low 1, high 4, original
// 8192.
std::vector<uint8_t> llama31_factors(double spoil) {
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 64; ++i) {
    const double inv = std::pow(500000.0, -2.0 * i / 128.0),
                 wavelength = 2.0 * 3.14159265358979323846 / inv;
    double factor = 1.0;
    if (wavelength > 8192.0) {
      factor = 8.0;
    } else if (wavelength >= 8192.0 / 4.0) {
      const double smooth = (8192.0 / wavelength - 1.0) / 3.0;
      factor = 1.0 / ((1.0 - smooth) / 8.0 + smooth) * spoil;
    }
    const float value = static_cast<float>(factor);
    bytes.insert(bytes.end(), reinterpret_cast<const uint8_t*>(&value),
                 reinterpret_cast<const uint8_t*>(&value) + 4);
  }
  return bytes;
}

}  // namespace

TEST_CASE("config.json from GGUF keys") {
  const Json config = config_of(small_gguf(10000.0f));
  CHECK(config.get_string("model_type", "") == "llama");
  CHECK(config.at("rms_norm_eps").dump() == "1e-05");  // not 9.99999974e-06
  CHECK(config.at("rope_theta").dump() == "10000.0");
  CHECK(config.at("rope_scaling").is_null());
  CHECK(config.get_int("vocab_size", 0) == 5);
  CHECK(config.get_int("head_dim", 0) == 128);
  CHECK(config.get_int("num_key_value_heads", 0) == 1);
  CHECK(config.get_bool("tie_word_embeddings", false));
  CHECK(config.get_int("eos_token_id", 0) == 3);
  CHECK(config.at("bos_token_id").is_null());
  const formats::HfConfig parsed = formats::parse_hf_config(config, "m.gguf");
  CHECK(parsed.rope.type == "default");
}

TEST_CASE("llama3 scaling is recognised by the factors that GGUF carries") {
  test::GgufBuilder builder = small_gguf(500000.0f);
  builder.tensor("rope_freqs.weight", 0, {64}, llama31_factors(1.0));
  const formats::HfConfig config = formats::parse_hf_config(config_of(builder), "m.gguf");
  CHECK(config.rope.type == "llama3");
  CHECK(config.rope.factor == 8.0);
  CHECK(config.rope.low_freq_factor == 1.0);
  CHECK(config.rope.high_freq_factor == 4.0);
  CHECK(config.rope.original_max_position_embeddings == 8192);

  builder = small_gguf(500000.0f);
  builder.tensor("rope_freqs.weight", 0, {64}, llama31_factors(1.1));
  LF_CHECK_ERROR(config_of(builder), ErrorCode::kBadData, "rope_freqs.weight");
  builder = small_gguf(500000.0f);
  builder.tensor("rope_freqs.weight", 0, {32}, std::vector<uint8_t>(128));
  LF_CHECK_ERROR(config_of(builder), ErrorCode::kBadData, "rope_freqs.weight");
  builder = small_gguf(500000.0f);
  builder.text("llama.rope.scaling.type", "yarn");
  LF_CHECK_ERROR(config_of(builder), ErrorCode::kBadData, "llama.rope.scaling.factor");
}

TEST_CASE("linear and yarn scaling have keys of their own") {
  test::GgufBuilder builder = small_gguf(10000.0f);
  builder.text("llama.rope.scaling.type", "linear");
  builder.f32("llama.rope.scaling.factor", 2.5f);
  formats::HfConfig config = formats::parse_hf_config(config_of(builder), "m.gguf");
  CHECK(config.rope.type == "linear");
  CHECK(config.rope.factor == 2.5);

  builder = small_gguf(1e6f, "qwen2");
  builder.text("qwen2.rope.scaling.type", "yarn");
  builder.f32("qwen2.rope.scaling.factor", 4.0f);
  builder.u32("qwen2.rope.scaling.original_context_length", 32768);
  config = formats::parse_hf_config(config_of(builder, "qwen2"), "m.gguf");
  CHECK(config.rope.type == "yarn");
  CHECK(config.rope.factor == 4.0);
  CHECK(config.rope.original_max_position_embeddings == 32768);
  builder.f32("qwen2.rope.scaling.attn_factor", 1.5f);
  LF_CHECK_ERROR(config_of(builder, "qwen2"), ErrorCode::kBadData,
                 "qwen2.rope.scaling.attn_factor");

  builder = small_gguf(10000.0f);
  builder.text("llama.rope.scaling.type", "longrope");
  LF_CHECK_ERROR(config_of(builder), ErrorCode::kBadData, "\"longrope\" is not supported");
}

TEST_CASE("each family's configuration of its architecture") {
  const Json qwen2 = config_of(small_gguf(1e6f, "qwen2"), "qwen2");
  CHECK(qwen2.get_string("model_type", "") == "qwen2");
  CHECK_FALSE(qwen2.get_bool("use_sliding_window", true));
  const Json qwen3 = config_of(small_gguf(1e6f, "qwen3"), "qwen3");
  CHECK(qwen3.get_string("model_type", "") == "qwen3");
  CHECK_FALSE(qwen3.get_bool("attention_bias", true));
  test::GgufBuilder builder = small_gguf(1e6f, "qwen2");
  builder.u32("qwen2.attention.sliding_window", 4096);
  LF_CHECK_ERROR(config_of(builder, "qwen2"), ErrorCode::kBadData,
                 "qwen2.attention.sliding_window is not supported");
}

TEST_CASE("names") {
  CHECK(models::decoder_gguf_name("model.embed_tokens.weight") == "token_embd.weight");
  CHECK(models::decoder_gguf_name("model.layers.12.self_attn.q_norm.weight") ==
        "blk.12.attn_q_norm.weight");
  CHECK(models::decoder_gguf_name("model.layers.0.self_attn.k_proj.bias") == "blk.0.attn_k.bias");
  LF_CHECK_ERROR(models::decoder_gguf_name("model.layers.0.wombat"), ErrorCode::kFailed,
                 "has no GGUF name");
  LF_CHECK_ERROR(models::decoder_gguf_name("model.layers"), ErrorCode::kFailed, "has no GGUF name");
}
