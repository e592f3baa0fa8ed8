#include "formats/hf_config.h"

#include <doctest/doctest.h>

#include "support/data.h"
#include "support/expect_error.h"

using namespace loongforge::formats;
using loongforge::ErrorCode;
using loongforge::support::Json;
using loongforge::tensor::DType;

namespace {

HfConfig family(const std::string& name) {
  return read_hf_config(loongforge::test::data_dir() / "formats/configs" / (name + ".json"));
}

// The llama3 configuration with one key replaced; an unparsable value removes it.
HfConfig with(const std::string& key, const char* value, const std::string& base = "llama3") {
  Json raw = family(base).raw;
  if (value == nullptr) {
    raw.erase(key);
  } else {
    raw.set(key, Json::parse(value, "value"));
  }
  return parse_hf_config(raw, "dir/config.json");
}

void refuse(const std::string& key, const char* value, const char* text,
            const std::string& base = "llama3") {
  CAPTURE(key);
  LF_CHECK_ERROR(with(key, value, base), ErrorCode::kBadData, text);
  LF_CHECK_ERROR(with(key, value, base), ErrorCode::kBadData, "dir/config.json: ");
}

}  // namespace

TEST_CASE("hf_config: families in the v4 spelling") {
  const HfConfig llama3 = family("llama3");
  CHECK_FALSE(llama3.v5);
  CHECK(llama3.model_type == "llama");
  CHECK(llama3.architecture == "LlamaForCausalLM");
  CHECK(llama3.vocab_size == 512);
  CHECK(llama3.hidden_size == 64);
  CHECK(llama3.intermediate_size == 160);
  CHECK(llama3.num_hidden_layers == 3);
  CHECK(llama3.num_attention_heads == 8);
  CHECK(llama3.num_key_value_heads == 2);
  CHECK(llama3.head_dim == 8);
  CHECK(llama3.rotary_dim() == 8);
  CHECK(llama3.max_position_embeddings == 256);
  CHECK(llama3.rms_norm_eps == 1e-5);
  CHECK_FALSE(llama3.tie_word_embeddings);
  CHECK(llama3.bos_token_id == 1);
  CHECK(llama3.eos_token_ids == std::vector<int64_t>{2});
  CHECK(llama3.pad_token_id == 0);
  CHECK(llama3.dtype == DType::kBF16);
  CHECK(llama3.rope.type == "llama3");
  CHECK(llama3.rope.theta == 5e5);
  CHECK(llama3.rope.factor == 8.0);
  CHECK(llama3.rope.low_freq_factor == 1.0);
  CHECK(llama3.rope.high_freq_factor == 4.0);
  CHECK(llama3.rope.original_max_position_embeddings == 32);
  CHECK(llama3.quant_method.empty());
  const HfConfig llama2 = family("llama2");
  CHECK(llama2.head_dim == 16);  // hidden / heads
  CHECK(llama2.rope.type == "default");
  CHECK(llama2.rope.theta == 1e4);
  const HfConfig mistral = family("mistral");
  CHECK(mistral.model_type == "mistral");
  CHECK(mistral.sliding_window == 8);
  const HfConfig qwen2 = family("qwen2");
  CHECK(qwen2.tie_word_embeddings);
  CHECK(qwen2.sliding_window == 0);
}

TEST_CASE("hf_config: families in the v5 spelling") {
  const HfConfig smollm2 = family("smollm2");
  CHECK(smollm2.v5);
  CHECK(smollm2.tie_word_embeddings);
  CHECK(smollm2.rope.theta == 1e5);
  CHECK(smollm2.rope.type == "default");
  CHECK(smollm2.dtype == DType::kBF16);
  const HfConfig qwen3 = family("qwen3");
  CHECK(qwen3.head_dim == 32);  // not hidden / heads
  CHECK(qwen3.layer_types.size() == 2);
  CHECK(qwen3.sliding_window == 0);
  CHECK(qwen3.raw.at("rope_parameters").at("rope_theta").as_double() == 1e6);
}

TEST_CASE("hf_config: both spellings of one thing agree or end in an error that shows both") {
  CHECK(with("dtype", "\"bfloat16\"").dtype == DType::kBF16);
  refuse("dtype", "\"float16\"", "torch_dtype is \"bfloat16\", but dtype is \"float16\"");
  CHECK(with("dtype", nullptr, "smollm2").dtype == std::nullopt);
  CHECK(with("torch_dtype", "\"torch.float32\"").dtype == DType::kF32);
  CHECK(with("torch_dtype", "\"auto\"").dtype == std::nullopt);
  refuse("torch_dtype", "\"int8\"", "torch_dtype is \"int8\"");
  refuse("rope_theta", "5.0", "rope_theta is 5.0, but rope_parameters.rope_theta is 100000.0",
         "smollm2");
  CHECK(with("rope_theta", "100000", "smollm2").rope.theta == 1e5);
  refuse("rope_parameters", R"({"rope_type": "default", "rope_theta": 500000.0})",
         "rope_scaling.factor is 8.0, but rope_parameters say nothing");
  CHECK(with("rope_parameters",
             R"({"rope_type": "llama3", "rope_theta": 500000, "factor": 8, "low_freq_factor": 1,
    "high_freq_factor": 4, "original_max_position_embeddings": 32})")
            .rope.factor == 8.0);
  CHECK(with("rope_scaling", R"({"type": "linear", "factor": 2})").rope.type == "linear");
  refuse("rope_scaling", R"({"type": "linear", "rope_type": "dynamic", "factor": 2})",
         "rope_scaling.rope_type is \"dynamic\", but rope_scaling.type is \"linear\"");
  const char* layered =
      R"({"full_attention": {"rope_type": "default", "rope_theta": 7.0}, "sliding_attention": {"rope_type": "default", "rope_theta": 7.0}})";
  CHECK(with("rope_parameters", layered, "qwen3").rope.theta == 7.0);
  refuse("rope_parameters",
         R"({"full_attention": {"rope_theta": 7.0}, "sliding_attention": {"rope_theta": 8.0}})",
         "rope_parameters differ between layer types", "qwen3");
}

TEST_CASE("hf_config: rope types") {
  const RopeConfig yarn =
      with(
          "rope_scaling",
          R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 16})")
          .rope;
  CHECK(yarn.factor == 4.0);
  CHECK(yarn.beta_fast == 16.0);
  CHECK(yarn.beta_slow == 1.0);
  CHECK(yarn.truncate);
  CHECK_FALSE(yarn.attention_factor.has_value());
  CHECK(with("rope_scaling",
             R"({"rope_type": "yarn", "factor": null, "original_max_position_embeddings": 64})")
            .rope.factor == 4.0);
  CHECK(with("rope_scaling", R"({"rope_type": "yarn", "factor": 2})")
            .rope.original_max_position_embeddings == 256);
  CHECK(with("rope_scaling", R"({"rope_type": "dynamic", "factor": 2})").rope.factor == 2.0);
  const RopeConfig longrope =
      with(
          "rope_scaling",
          R"({"rope_type": "longrope", "short_factor": [1, 1, 1, 1], "long_factor": [1, 2, 3, 4.5], "original_max_position_embeddings": 128})")
          .rope;
  CHECK(longrope.factor == 2.0);
  CHECK(longrope.long_factor == std::vector<double>{1, 2, 3, 4.5});
  refuse(
      "rope_scaling",
      R"({"rope_type": "longrope", "short_factor": [1, 1], "long_factor": [1, 2, 3, 4], "factor": 2})",
      "rope_scaling.short_factor has 2 values, not half the rotary dimensions, 4");
  refuse("rope_scaling", R"({"rope_type": "su", "factor": 2})",
         "rope_scaling.rope_type is \"su\"; known: default, linear");
  refuse("rope_scaling", R"({"factor": 2})", "rope_scaling.rope_type is missing");
  refuse("rope_scaling", R"({"rope_type": "linear"})",
         "rope_scaling.factor is missing, which rope_type linear needs");
  refuse("rope_scaling", R"({"rope_type": "linear", "factor": -1})",
         "rope_scaling.factor is -1, not above 0");
  refuse("rope_scaling",
         R"({"rope_type": "llama3", "factor": 2, "low_freq_factor": 1, "high_freq_factor": 4})",
         "original_max_position_embeddings is missing");
  refuse(
      "rope_scaling",
      R"({"rope_type": "llama3", "factor": 2, "low_freq_factor": 4, "high_freq_factor": 4, "original_max_position_embeddings": 32})",
      "high_freq_factor is 4.0, not above low_freq_factor, which is 4.0");
  refuse("rope_scaling", "3", "rope_scaling is 3, not an object");
  refuse("partial_rotary_factor", "0.1", "gives 0 rotary dimensions");
  CHECK(with("partial_rotary_factor", "0.5").rotary_dim() == 4);
}

TEST_CASE("hf_config: what rope writes reads back as itself") {
  for (
      const char* text :
      {R"({"rope_type": "default"})",
       R"({"rope_type": "yarn", "factor": 4.0, "mscale": 0.7, "truncate": false})",
       R"({"rope_type": "longrope", "short_factor": [1, 1, 1, 1], "long_factor": [1, 2, 3, 4.5], "factor": 2.0})"}) {
    const RopeConfig rope = with("rope_scaling", text).rope;
    Json raw = family("llama3").raw;
    raw.erase("rope_scaling");
    raw.erase("rope_theta");
    raw.set("rope_parameters", rope.to_json());
    const HfConfig again = parse_hf_config(raw, "again");
    CHECK(again.v5);
    CHECK(again.rope.to_json() == rope.to_json());
  }
}

TEST_CASE("hf_config: absent and null values") {
  CHECK(with("num_key_value_heads", "null").num_key_value_heads == 8);
  CHECK(with("num_key_value_heads", nullptr).num_key_value_heads == 8);
  CHECK(with("head_dim", "null").head_dim == 8);
  CHECK(with("eos_token_id", "[2, 3]").eos_token_ids == std::vector<int64_t>{2, 3});
  CHECK(with("eos_token_id", "null").eos_token_ids.empty());
  CHECK(with("bos_token_id", nullptr).bos_token_id == std::nullopt);
  CHECK(with("pad_token_id", "-1").pad_token_id == std::nullopt);
  CHECK(with("model_type", nullptr).model_type.empty());
  CHECK(with("rope_theta", nullptr, "llama2").rope.theta == 1e4);
  CHECK(with("quantization_config", R"({"quant_method": "fp8"})").quant_method == "fp8");
}

TEST_CASE("hf_config: wrong values name file, key and value") {
  refuse("hidden_size", nullptr, "hidden_size is missing");
  refuse("vocab_size", "\"512\"", "vocab_size is \"512\", not an integer");
  refuse("num_hidden_layers", "0", "num_hidden_layers is 0, not between");
  refuse("intermediate_size", "99999999999", "intermediate_size is 99999999999, not between");
  refuse("num_key_value_heads", "3",
         "num_attention_heads is 8, no multiple of num_key_value_heads, which is 3");
  refuse("head_dim", "7", "gives 7 rotary dimensions");
  refuse("hidden_size", "102",
         "hidden_size is 102, no multiple of num_attention_heads, which is 4, and there is no "
         "head_dim",
         "llama2");
  refuse("rms_norm_eps", "-1.0", "rms_norm_eps is -1.0");
  refuse("rms_norm_eps", "\"1e-5\"", "rms_norm_eps is \"1e-5\", not a number");
  refuse("tie_word_embeddings", "1", "tie_word_embeddings is 1, not true or false");
  refuse("eos_token_id", "512", "eos_token_id is 512, but vocab_size is 512");
  refuse("eos_token_id", "[1, \"2\"]", "eos_token_id holds \"2\", not an integer");
  refuse("bos_token_id", "-1", "bos_token_id is -1");
  refuse("architectures", "\"x\"", "architectures is \"x\", not a list");
  refuse("layer_types", "[\"full_attention\"]",
         "layer_types has 1 entries, but num_hidden_layers is 3");
  refuse("attention_dropout", "1.5", "attention_dropout is not between 0 and 1");
  LF_CHECK_ERROR(parse_hf_config(Json::parse("[]", ""), "config.json"), ErrorCode::kBadData,
                 "config.json: is JSON of type array");
  LF_CHECK_ERROR(read_hf_config("/nonexistent/config.json"), ErrorCode::kNoInput,
                 "/nonexistent/config.json");
}

TEST_CASE("hf_config: generation_config") {
  const GenerationConfig g = parse_generation_config(
      Json::parse(R"({"eos_token_id": [2, 3], "pad_token_id": 0, "temperature": 0.7})", ""), "g");
  CHECK(g.eos_token_ids == std::vector<int64_t>{2, 3});
  CHECK(g.pad_token_id == 0);
  CHECK_FALSE(g.bos_token_id.has_value());
  CHECK(g.raw.at("temperature").as_double() == 0.7);
  CHECK(read_generation_config(loongforge::test::data_dir() /
                               "formats/sharded/generation_config.json")
            .has_value());
  CHECK_FALSE(read_generation_config("/nonexistent/generation_config.json").has_value());
  LF_CHECK_ERROR(parse_generation_config(Json::parse(R"({"eos_token_id": "x"})", ""), "g.json"),
                 ErrorCode::kBadData, "g.json: eos_token_id is \"x\", not an integer");
}
