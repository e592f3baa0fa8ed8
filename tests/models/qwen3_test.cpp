#include "models/models_support.h"

using namespace loongforge;
using test::node;
using test::plan_of;
using test::plan_with;

TEST_CASE("qwen3: norms of the heads of q and k before they are rotated") {
  const models::ModelPlan plan = plan_of("qwen3");  // four shards
  CHECK(plan.warnings.empty());
  CHECK(plan.tensors.size() == 3 + 2 * 11);
  const ir::Node& norm = node(plan, "layers.1.self_attn.k_norm");
  CHECK(norm.inputs == std::vector<std::string>{"layers.1.self_attn.k_proj"});
  CHECK(norm.params.at("weight") == "model.layers.1.self_attn.k_norm.weight");
  CHECK(norm.attrs.get_int("group", 0) == 32);
  CHECK(node(plan, "layers.1.self_attn.k_rope").inputs ==
        std::vector<std::string>{"layers.1.self_attn.k_norm"});
  CHECK(node(plan, "layers.1.self_attn.q_rope").inputs ==
        std::vector<std::string>{"layers.1.self_attn.q_norm"});
  // head_dim is not hidden_size / heads.
  CHECK(node(plan, "layers.0.self_attn.q_proj").attrs.get_int("out", 0) == 128);
  CHECK(node(plan, "layers.0.self_attn.o_proj").attrs.get_int("in", 0) == 128);
  CHECK_FALSE(node(plan, "layers.0.self_attn.q_proj").params.contains("bias"));
}

TEST_CASE("qwen3: keys of its own") {
  LF_CHECK_ERROR(plan_with("qwen3", {{"attention_bias", true}}), ErrorCode::kBadData,
                 "self_attn.q_proj.bias");
  // Where head_dim is absent transformers takes 128, whatever hidden_size says.
  LF_CHECK_ERROR(plan_with("qwen3", {}, "head_dim"), ErrorCode::kBadData, "asks for [512, 48]");
  CHECK(models::find_by_label("Qwen3-8B") == models::find_by_model_type("qwen3"));
  CHECK(models::find_by_gguf_architecture("qwen3") == models::find_by_model_type("qwen3"));
}
