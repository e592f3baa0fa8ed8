#include "models/decoder.h"

#include "models/models_support.h"

using namespace loongforge;
using models::ModelPlan;
using support::Json;
using test::json;
using test::node;
using test::plan_of;
using test::plan_with;
using test::refuse;
using test::window_of;

TEST_CASE("configurations that do not fit are refused by name") {
  refuse("llama2", "hidden_act", "gelu", "hidden_act \"gelu\"");
  refuse("llama2", "hidden_act", "a\nb\x1b[31m",
         "hidden_act \"a");  // one line, without control bytes
  refuse("llama2", "architectures", json(R"(["LlamaForSequenceClassification"])"),
         "LlamaForSequenceClassification, which has no language model head");
  refuse("llama2", "num_hidden_layers", 3, "model.layers.2.input_layernorm.weight");
  refuse("llama2", "num_hidden_layers", int64_t{1} << 30, "model.layers.2.input_layernorm.weight");
  refuse("llama2", "intermediate_size", 171, "has the shape [172, 64]");
  refuse("llama2", "vocab_size", 319, "model.embed_tokens.weight");
  refuse("llama2", "num_key_value_heads", 3, "multiple of num_key_value_heads");
  refuse("llama2", "attention_bias", true, "self_attn.q_proj.bias");
  refuse("llama2", "mlp_bias", true, "mlp.gate_proj.bias");
  refuse("llama2", "rope_scaling", json(R"({"type": "longrope", "factor": 2.0,
         "short_factor": [1, 1, 1, 1, 1, 1, 1, 1], "long_factor": [2, 2, 2, 2, 2, 2, 2, 2]})"),
         "rope type \"longrope\" is not supported");
  refuse("llama2", "model_type", "wombat", "model_type \"wombat\"");
  refuse("llama2", "partial_rotary_factor", 0.5, "partial_rotary_factor");
  refuse("smollm2", "tie_word_embeddings", false, "lm_head.weight");
}

TEST_CASE("rope types go into the graph with what they need") {
  const auto scaling = [](const char* text) {
    const ModelPlan plan = plan_with("llama2", {{"rope_scaling", json(text)}});
    return node(plan, "layers.1.self_attn.k_rope").attrs.at("scaling");
  };
  CHECK(scaling(R"({"type": "linear", "factor": 2.5})") ==
        json(R"({"rope_type": "linear", "factor": 2.5})"));
  // How long the model's documents were is part of dynamic's formula.
  CHECK(scaling(R"({"rope_type": "dynamic", "factor": 2.0})") ==
        json(R"({"rope_type": "dynamic", "factor": 2.0, "max_position_embeddings": 128})"));
  const Json yarn = scaling(
      R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64,
          "beta_fast": 16, "mscale": 0.7, "mscale_all_dim": 0.9, "truncate": false})");
  CHECK(yarn.get_double("beta_fast", 0) == 16.0);
  CHECK(yarn.get_double("mscale_all_dim", 0) == 0.9);
  CHECK_FALSE(yarn.get_bool("truncate", true));
}

TEST_CASE("windows by layer: layer_types, or the layers from max_window_layers on") {
  const Json yes(true);
  CHECK(window_of(plan_of("qwen2"), 0) == 0);
  CHECK(window_of(plan_of("qwen2"), 1) == 0);
  const ModelPlan typed =
      plan_with("qwen2", {{"use_sliding_window", yes},
                          {"sliding_window", 6},
                          {"layer_types", json(R"(["sliding_attention", "full_attention"])")}});
  CHECK(window_of(typed, 0) == 6);
  CHECK(window_of(typed, 1) == 0);
  for (const char* family : {"qwen2", "qwen3"}) {
    const ModelPlan upper = plan_with(
        family, {{"use_sliding_window", yes}, {"sliding_window", 6}, {"max_window_layers", 1}},
        "layer_types");
    CHECK(window_of(upper, 0) == 0);
    CHECK(window_of(upper, 1) == 6);
  }
  // transformers' default of max_window_layers is 28: no layer of two.
  CHECK(window_of(
            plan_with("qwen2",
                      {{"use_sliding_window", yes}, {"sliding_window", 6}, {"layer_types", Json()}},
                      "max_window_layers"),
            1) == 0);
  refuse("qwen2", "layer_types", json(R"(["sliding_attention", "full_attention"])"),
         "layer_types has \"sliding_attention\", but use_sliding_window is not true");
  LF_CHECK_ERROR(plan_with("qwen3", {{"use_sliding_window", yes},
                                     {"layer_types", json(R"(["sliding_attention", "chunked"])")},
                                     {"sliding_window", 4}}),
                 ErrorCode::kBadData, "layer_types has \"chunked\"");
  LF_CHECK_ERROR(
      plan_with("qwen3", {{"use_sliding_window", yes},
                          {"layer_types", json(R"(["sliding_attention", "full_attention"])")}}),
      ErrorCode::kBadData, "sliding_window is null");
}

TEST_CASE("dropout of attention weights is not silently left out") {
  const ModelPlan plan = plan_with("llama2", {{"attention_dropout", 0.1}});
  REQUIRE(plan.warnings.size() == 1);
  CHECK(plan.warnings[0].find("attention_dropout") != std::string::npos);
}
