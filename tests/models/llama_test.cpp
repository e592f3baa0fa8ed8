#include <doctest/doctest.h>

#include <set>

#include "models/models_support.h"
#include "support/temp_dir.h"

using namespace loongforge;
using models::ModelPlan;
using support::Json;

using test::node;
using test::plan_of;

TEST_CASE("llama2: the graph") {
  const ModelPlan plan = plan_of("llama2");
  CHECK(plan.graph.nodes.size() == 3 + 2 * 15);
  CHECK(plan.tensors.size() == 3 + 2 * 9);
  CHECK(plan.aliases.empty());
  CHECK(plan.warnings.empty());
  std::set<std::string> earlier = {"token_ids"};
  for (const ir::Node& each : plan.graph.nodes) {
    for (const std::string& input : each.inputs) CHECK(earlier.contains(input));
    earlier.insert(each.name);
  }
  CHECK(plan.graph.nodes.front().op == "embedding");
  CHECK(plan.graph.nodes.front().shard == "io_shard");
  CHECK(plan.graph.nodes.front().block == -1);
  const ir::Node& head = plan.graph.nodes.back();
  CHECK(head.name == "lm_head");
  CHECK(head.params.at("weight") == "lm_head.weight");
  CHECK(head.shard == "ddp_replicate");
  const ir::Node& q = node(plan, "layers.1.self_attn.q_proj");
  CHECK(q.block == 1);
  CHECK(q.inputs == std::vector<std::string>{"layers.1.input_layernorm"});
  CHECK(q.params.at("weight") == "model.layers.1.self_attn.q_proj.weight");
  CHECK(q.attrs.get_int("in", 0) == 64);
  const ir::Node& attention = node(plan, "layers.0.self_attn.attention");
  CHECK(attention.inputs == std::vector<std::string>{"layers.0.self_attn.q_rope",
                                                     "layers.0.self_attn.k_rope",
                                                     "layers.0.self_attn.v_proj"});
  CHECK(attention.attrs.get_double("scale", 0) == 0.25);  // head_dim 16
  const ir::Node& rope = node(plan, "layers.0.self_attn.k_rope");
  CHECK(rope.attrs.get_double("theta", 0) == 10000.0);
  CHECK(rope.attrs.get_int("rotary_dim", 0) == 16);
  CHECK_FALSE(rope.attrs.contains("scaling"));
  // The residual of a block reads its input, that of the second half the first one's.
  CHECK(node(plan, "layers.1.self_attn.residual").inputs ==
        std::vector<std::string>{"layers.0.mlp.residual", "layers.1.self_attn.o_proj"});
  CHECK(node(plan, "norm").inputs == std::vector<std::string>{"layers.1.mlp.residual"});
}

TEST_CASE("llama3: grouped heads and rope scaling") {
  const ModelPlan plan = plan_of("llama3");
  const ir::Node& attention = node(plan, "layers.2.self_attn.attention");
  CHECK(attention.attrs.get_int("heads", 0) == 8);
  CHECK(attention.attrs.get_int("kv_heads", 0) == 2);
  CHECK(node(plan, "layers.0.self_attn.k_proj").attrs.get_int("out", 0) == 16);
  const Json& scaling = node(plan, "layers.0.self_attn.q_rope").attrs.at("scaling");
  CHECK(scaling.get_string("rope_type", "") == "llama3");
  CHECK(scaling.get_double("factor", 0) == 8.0);
  CHECK(scaling.get_double("low_freq_factor", 0) == 1.0);
  CHECK(scaling.get_double("high_freq_factor", 0) == 4.0);
  CHECK(scaling.get_int("original_max_position_embeddings", 0) == 32);
}

TEST_CASE("smollm2: the head is the embedding") {
  const ModelPlan plan = plan_of("smollm2");
  CHECK(plan.graph.nodes.back().params.at("weight") == "model.embed_tokens.weight");
  REQUIRE(plan.aliases.size() == 1);
  CHECK(plan.aliases[0].name == "lm_head.weight");
  CHECK(plan.aliases[0].alias_of == "model.embed_tokens.weight");
  for (const models::PlannedTensor& tensor : plan.tensors) CHECK(tensor.name != "lm_head.weight");
}

TEST_CASE("fewer layers than the file has are said") {
  const std::filesystem::path folder = test::model_dir("llama2") / "checkpoint";
  Json config = test::load_config(folder);
  config.set("num_hidden_layers", 1);
  const ModelPlan plan = plan_of(folder, formats::parse_hf_config(config, "config.json"));
  REQUIRE(plan.warnings.size() == 1);
  CHECK(plan.warnings[0].find("9 tensors") != std::string::npos);
}

TEST_CASE("buffers of old files are ignored") {
  const test::TempDir dir;
  std::vector<test::MadeTensor> tensors =
      test::load_tensors(test::model_dir("llama2") / "checkpoint");
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq",
                     tensor::DType::kF32,
                     {2},
                     std::vector<uint8_t>(8)});
  test::write_checkpoint(dir / "m", tensors,
                         test::load_config(test::model_dir("llama2") / "checkpoint"));
  const ModelPlan plan = plan_of(dir / "m", formats::read_hf_config(dir / "m" / "config.json"));
  CHECK(plan.ignored == std::vector<std::string>{"model.layers.0.self_attn.rotary_emb.inv_freq"});
  CHECK(plan.warnings.empty());
}

TEST_CASE("a large block is sharded, a small one replicated") {
  const test::TempDir dir;
  Json config = test::load_config(test::model_dir("llama2") / "checkpoint");
  const int64_t hidden = 1024, inner = 8192;  // 29 million parameters in a block
  config.set("hidden_size", hidden);
  config.set("intermediate_size", inner);
  config.set("num_hidden_layers", 1);
  std::vector<formats::NewTensor> news;
  const auto add = [&news](const std::string& name, std::vector<int64_t> shape) {
    news.push_back({name, tensor::DType::kBF16, std::move(shape)});
  };
  add("model.embed_tokens.weight", {320, hidden});
  add("lm_head.weight", {320, hidden});
  add("model.norm.weight", {hidden});
  const std::string block = "model.layers.0.";
  for (const char* name : {"input_layernorm", "post_attention_layernorm"})
    add(block + name + ".weight", {hidden});
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    add(block + "self_attn." + name + ".weight", {hidden, hidden});
  for (const char* name : {"gate_proj", "up_proj"})
    add(block + "mlp." + name + ".weight", {inner, hidden});
  add(block + "mlp.down_proj.weight", {hidden, inner});
  std::filesystem::create_directories(dir / "m");
  formats::ShardedWriter writer(dir / "m", news, uint64_t{1} << 40);
  for (const formats::NewTensor& each : news)
    writer.write(each.name, std::vector<uint8_t>(each.bytes()));
  writer.finish();
  const ModelPlan plan = plan_of(dir / "m", formats::parse_hf_config(config, "config.json"));
  CHECK(node(plan, "layers.0.mlp.up_proj").shard == "fsdp_shard");
  CHECK(node(plan, "layers.0.input_layernorm").shard == "fsdp_shard");
  CHECK(node(plan, "embed_tokens").shard == "io_shard");
  CHECK(node(plan, "norm").shard == "ddp_replicate");
  CHECK(node(plan, "lm_head").shard == "ddp_replicate");
  CHECK(node(plan_of("llama2"), "layers.0.mlp.up_proj").shard == "ddp_replicate");
}
