#include "models/models_support.h"

using namespace loongforge;
using test::node;
using test::plan_of;
using test::plan_with;
using test::window_of;

TEST_CASE("mistral: the window of every layer") {
  const models::ModelPlan plan = plan_of("mistral");
  CHECK(plan.graph.nodes.size() == 3 + 2 * 15);
  CHECK(plan.tensors.size() == 3 + 2 * 9);
  CHECK(plan.warnings.empty());
  CHECK(window_of(plan, 0) == 8);
  CHECK(window_of(plan, 1) == 8);
  CHECK(node(plan, "layers.0.self_attn.attention").attrs.get_int("kv_heads", 0) == 2);
  CHECK(window_of(plan_with("mistral", {{"sliding_window", support::Json()}}), 1) == 0);
  // Absent is not null: transformers then takes 4096.
  CHECK(window_of(plan_with("mistral", {}, "sliding_window"), 1) == 4096);
}

TEST_CASE("mistral: read from GGUF as llama, written to it as llama") {
  const models::Family* family = models::find_by_model_type("mistral");
  REQUIRE(family != nullptr);
  CHECK(models::find_by_label("Mistral-7B-v0.1") == family);
  CHECK(models::find_by_gguf_architecture("llama") == models::find_by_name("llama"));
  CHECK(models::has_gguf_architecture(*family, "llama"));  // so the label does not contradict it
  CHECK_FALSE(models::has_gguf_architecture(*family, "qwen2"));
}
