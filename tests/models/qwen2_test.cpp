#include "models/models_support.h"

using namespace loongforge;
using test::node;
using test::plan_of;

TEST_CASE("qwen2: biases of q, k and v, none of o, a tied head") {
  const models::ModelPlan plan = plan_of("qwen2");
  CHECK(plan.warnings.empty());
  CHECK(plan.tensors.size() == 2 + 2 * 12);
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    const std::string module = std::string("layers.1.self_attn.") + name;
    CHECK(node(plan, module).params.at("bias") == "model." + module + ".bias");
  }
  CHECK_FALSE(node(plan, "layers.1.self_attn.o_proj").params.contains("bias"));
  CHECK_FALSE(node(plan, "layers.1.mlp.up_proj").params.contains("bias"));
  CHECK(plan.graph.nodes.back().params.at("weight") == "model.embed_tokens.weight");
  CHECK(node(plan, "layers.0.self_attn.q_rope").attrs.get_double("theta", 0) == 1e6);
}

TEST_CASE("qwen2 is found by its names") {
  const models::Family* family = models::find_by_model_type("qwen2");
  REQUIRE(family != nullptr);
  CHECK(models::find_by_label("Qwen2.5-0.5B-Instruct") == family);
  CHECK(models::find_by_gguf_architecture("qwen2") == family);
}
