#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "formats/gguf.h"
#include "models/registry.h"
#include "support/checkpoint_files.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;
using models::ModelPlan;
using support::Json;

namespace {

ModelPlan plan_of(const std::filesystem::path& folder, const formats::HfConfig& config) {
  const auto source = formats::open_tensor_source(folder);
  ModelPlan plan =
      models::choose_family(config, "").plan(config, *source, models::SourceNames::kHuggingFace);
  for (models::PlannedTensor& tensor : plan.tensors)
    tensor.source = nullptr;  // the source ends here
  for (models::PlannedAlias& alias : plan.aliases) alias.source = nullptr;
  return plan;
}

ModelPlan plan_of(const std::string& family) {
  const std::filesystem::path folder = test::model_dir(family) / "checkpoint";
  return plan_of(folder, formats::read_hf_config(folder / "config.json"));
}

// A golden family's plan with one key of its configuration changed.
void refuse(const std::string& family, const char* key, Json value, const char* text) {
  const std::filesystem::path folder = test::model_dir(family) / "checkpoint";
  Json config = test::load_config(folder);
  config.set(key, std::move(value));
  LF_CHECK_ERROR(plan_of(folder, formats::parse_hf_config(config, "config.json")),
                 ErrorCode::kBadData, text);
}

const ir::Node& node(const ModelPlan& plan, const std::string& name) {
  for (const ir::Node& each : plan.graph.nodes) {
    if (each.name == name) return each;
  }
  FAIL("no node " << name);
  throw 0;
}

}  // namespace

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

TEST_CASE("configurations that do not fit are refused by name") {
  refuse("llama2", "hidden_act", "gelu", "hidden_act \"gelu\"");
  refuse("llama2", "num_hidden_layers", 3, "model.layers.2.input_layernorm.weight");
  refuse("llama2", "num_hidden_layers", int64_t{1} << 30, "model.layers.2.input_layernorm.weight");
  refuse("llama2", "intermediate_size", 171, "has the shape [172, 64]");
  refuse("llama2", "vocab_size", 319, "model.embed_tokens.weight");
  refuse("llama2", "num_key_value_heads", 3, "multiple of num_key_value_heads");
  refuse("llama2", "attention_bias", true, "self_attn.q_proj.bias");
  refuse("llama2", "rope_scaling", Json::parse(R"({"type": "linear", "factor": 2.0})", "t"),
         "linear");
  refuse("llama2", "quantization_config", Json::parse(R"({"quant_method": "fp8"})", "t"),
         "quantised (fp8)");
  refuse("llama2", "model_type", "wombat", "model_type \"wombat\"");
  refuse("smollm2", "tie_word_embeddings", false, "lm_head.weight");
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

namespace {

test::GgufBuilder small_gguf(float theta) {
  test::GgufBuilder b;
  b.text("general.architecture", "llama");
  b.u32("llama.context_length", 131072);
  b.u32("llama.embedding_length", 256);
  b.u32("llama.block_count", 1);
  b.u32("llama.feed_forward_length", 8);
  b.u32("llama.attention.head_count", 2);
  b.u32("llama.attention.head_count_kv", 1);
  b.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  b.f32("llama.rope.freq_base", theta);
  b.u32("tokenizer.ggml.eos_token_id", 3);
  b.tensor("token_embd.weight", 0, {5, 2}, std::vector<uint8_t>(40));
  return b;
}

Json config_of(const test::GgufBuilder& builder) {
  const test::TempDir dir;
  test::write_file(dir / "m.gguf", builder.bytes());
  const formats::GgufFile file(dir / "m.gguf");
  return models::find_by_gguf_architecture("llama")->config_from_gguf(file);
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
  LF_CHECK_ERROR(config_of(builder), ErrorCode::kBadData, "yarn");
}
