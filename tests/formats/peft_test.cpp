#include "formats/peft.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "support/bytes.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "support/torch_zip.h"

using namespace loongforge::formats;
using loongforge::ErrorCode;
using loongforge::support::Json;
using loongforge::tensor::DType;
using loongforge::test::TempDir;

namespace {

std::filesystem::path golden(const char* name) {
  return loongforge::test::data_dir() / "formats" / name;
}

Json golden_config() {
  return loongforge::support::read_json(
      (golden("adapter_llama3") / "adapter_config.json").string());
}

PeftConfig with(const char* key, const char* value) {
  Json raw = golden_config();
  if (value == nullptr) {
    raw.erase(key);
  } else {
    raw.set(key, Json::parse(value, "value"));
  }
  return parse_peft_config(raw, "dir/adapter_config.json");
}

void refuse(const char* key, const char* value, const char* text) {
  CAPTURE(key);
  LF_CHECK_ERROR(with(key, value), ErrorCode::kBadData, text);
  LF_CHECK_ERROR(with(key, value), ErrorCode::kBadData, "dir/adapter_config.json: ");
}

// A folder with the golden configuration (r = 4) and one safetensors file of F32 tensors.
void refuse_tensors(const std::vector<NewTensor>& tensors, const char* text) {
  TempDir dir;
  loongforge::test::write_file(dir / "adapter_config.json", golden_config().dump());
  SafetensorsWriter writer(dir / "adapter_model.safetensors", tensors);
  for (const NewTensor& tensor : tensors)
    writer.write(tensor.name, std::vector<uint8_t>(tensor.bytes()));
  writer.finish();
  LF_CHECK_ERROR(PeftAdapter(dir.path()), ErrorCode::kBadData, text);
  LF_CHECK_ERROR(PeftAdapter(dir.path()), ErrorCode::kBadData, "adapter_model.safetensors: ");
}

}  // namespace

TEST_CASE("peft: the reference's adapters") {
  const PeftAdapter adapter(golden("adapter_llama3"));
  CHECK(adapter.config().r == 4);
  CHECK(adapter.config().lora_alpha == 8.0);
  CHECK_FALSE(adapter.config().use_rslora);
  CHECK(adapter.config().target_modules.size() == 7);
  CHECK(adapter.modules().size() == 3 * 7);
  const PeftModule& first = adapter.modules().front();
  CHECK(first.module == "model.layers.0.mlp.down_proj");
  CHECK(first.r == 4);
  CHECK(first.in == 160);
  CHECK(first.out == 64);
  CHECK(first.scaling == 2.0);
  CHECK(adapter.tensors().read_f32(*first.a).size() == 4 * 160);
  const PeftAdapter stabilised(golden("adapter_qwen3"));
  CHECK(stabilised.config().use_rslora);
  CHECK(stabilised.modules().front().scaling == 4.0);  // 8 / sqrt(4)
}

TEST_CASE("peft: what is read is written again: equal tensors, the reference's keys and values") {
  for (const char* name : {"adapter_llama3", "adapter_qwen3"}) {
    const PeftAdapter in(golden(name));
    std::vector<std::vector<float>> values;
    std::vector<PeftWeights> weights;
    for (const PeftModule& m : in.modules()) {
      values.push_back(in.tensors().read_f32(*m.a));
      values.push_back(in.tensors().read_f32(*m.b));
      weights.push_back({m.module, m.r, m.in, m.out, nullptr, nullptr});
    }
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i].a = values[2 * i].data();
      weights[i].b = values[2 * i + 1].data();
    }
    TempDir dir;
    write_peft(dir.path(), in.config(), weights);
    CHECK(loongforge::test::read_file(dir / "adapter_config.json") ==
          loongforge::test::read_file(golden(name) / "adapter_config.json"));
    CHECK(loongforge::test::read_file(dir / "adapter_model.safetensors") ==
          loongforge::test::read_file(golden(name) / "adapter_model.safetensors"));
    write_peft(dir.path(), in.config(), weights, DType::kBF16);  // replaces both files
    const PeftAdapter again(dir.path());
    CHECK(again.modules().size() == in.modules().size());
    CHECK(again.modules()[0].a->dtype == DType::kBF16);
    CHECK(dir.entries() == 2);
  }
}

TEST_CASE("peft: patterns") {
  PeftConfig config =
      with("rank_pattern",
           R"({"layers.1.self_attn.q_proj": 2, "v_proj": 16, "model\\.layers\\.[0-3]\\..*": 32})");
  config.alpha_pattern = {{"v_proj", 64.0}};
  CHECK(config.rank_of("model.layers.1.self_attn.q_proj") == 2);
  CHECK(config.rank_of("model.layers.11.self_attn.q_proj") == 4);
  CHECK(config.rank_of("model.layers.7.self_attn.v_proj") == 16);
  CHECK(config.rank_of("model.layers.7.self_attn.xv_proj") == 4);
  CHECK(config.rank_of("model.layers.2.mlp.up_proj") == 32);
  CHECK(config.scaling_of("model.layers.7.self_attn.v_proj") == 4.0);
  config.use_rslora = true;
  CHECK(config.scaling_of("model.layers.7.self_attn.v_proj") == 16.0);
  config.rank_pattern = {{"(", 1}};
  LF_CHECK_ERROR(config.rank_of("x"), ErrorCode::kBadData, "adapter_config.json");
  const Json json = peft_config_json(with("rank_pattern", R"({"v_proj": 16})"));
  CHECK(json.at("rank_pattern").at("v_proj").as_int() == 16);
  CHECK(parse_peft_config(json, "again").rank_of("a.v_proj") == 16);
}

TEST_CASE("peft: targets as an expression, fractional alpha, absent keys") {
  CHECK(with("target_modules", "\".*_proj\"").target_regex == ".*_proj");
  CHECK(peft_config_json(with("target_modules", "\".*_proj\"")).at("target_modules").as_string() ==
        ".*_proj");
  CHECK(with("lora_alpha", "2.5").lora_alpha == 2.5);
  CHECK(peft_config_json(with("lora_alpha", "2.5")).at("lora_alpha").as_double() == 2.5);
  CHECK(with("r", nullptr).r == 8);
  CHECK(with("lora_alpha", nullptr).lora_alpha == 8.0);
  CHECK(with("task_type", "null").task_type.empty());
  const PeftConfig least = parse_peft_config(
      Json::parse(R"({"peft_type": "LORA", "target_modules": ["q_proj"]})", ""), "c");
  CHECK(least.target_modules == std::vector<std::string>{"q_proj"});
}

TEST_CASE("peft: which modules the configuration means, by PEFT's rules") {
  const std::string q0 = "model.layers.0.self_attn.q_proj",
                    q11 = "model.layers.11.self_attn.q_proj";
  // target_modules, another key and its value, what of q0, q11, model.layers.1.mlp.up_proj, lm_head
  struct Case {
    const char *targets, *key, *value, *want;
  };
  const Case cases[] = {
      {R"(["q_proj"])", "revision", "null", "yynn"},
      {R"(["proj"])", "revision", "null", "nnnn"},
      {R"(["self_attn.q_proj", "lm_head"])", "revision", "null", "yyny"},
      {R"(["model.layers.0.self_attn.q_proj"])", "revision", "null", "ynnn"},
      {R"(".*_proj")", "revision", "null", "yyyn"},
      {R"("q_proj")", "revision", "null", "nnnn"},
      {R"("model\\.layers\\.1.*")", "revision", "null", "nyyn"},
      {R"("all-linear")", "revision", "null", "yyyn"},
      {R"("ALL-LINEAR")", "exclude_modules", R"(["up_proj"])", "yynn"},
      {R"(".*_proj")", "exclude_modules", R"(".*\\.11\\..*")", "ynyn"},
      {R"(["q_proj", "up_proj"])", "layers_to_transform", "0", "ynnn"},
      {R"(["q_proj", "up_proj"])", "layers_to_transform", "[1, 11]", "nyyn"},
      {R"(["q_proj", "lm_head"])", "layers_to_transform", "[]", "yyny"},
      {R"(["q_proj", "lm_head"])", "layers_to_transform", "[0]", "ynny"},
      {R"(["model.layers.0.self_attn.q_proj"])", "layers_to_transform", "[11]", "ynnn"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.targets);
    CAPTURE(each.value);
    Json raw = golden_config();
    raw.set("target_modules", Json::parse(each.targets, "t"));
    raw.set(each.key, Json::parse(each.value, "t"));
    const PeftConfig config = parse_peft_config(raw, "c");
    std::string got;
    for (const std::string& module :
         {q0, q11, std::string("model.layers.1.mlp.up_proj"), std::string("lm_head")})
      got += config.targets(module) ? 'y' : 'n';
    CHECK(got == each.want);
  }
  PeftConfig config = with("layers_to_transform", "[3]");
  config.layers_pattern = {"blocks", "h"};
  CHECK(config.targets("model.h.3.q_proj"));
  CHECK(config.targets("h.3.q_proj"));
  CHECK_FALSE(config.targets("model.layers.3.q_proj"));
  CHECK_FALSE(config.targets("model.h.30.q_proj"));
  CHECK_FALSE(config.targets("model.h.99999999999999999999.q_proj"));
  config.layers_pattern = {"(("};
  LF_CHECK_ERROR(config.targets("h.3.q_proj"), ErrorCode::kBadData, "adapter_config.json");
}

TEST_CASE("peft: a configuration that was read keeps its keys, and the order of its patterns") {
  Json raw = Json::parse(R"({"peft_type": "LORA", "r": 4, "target_modules": ["q_proj"],
    "layers_to_transform": [0], "peft_version": "0.11.1", "lora_dtype": "fp32", "extra": false,
    "rank_pattern": {"v_proj": 2, "k_proj|v_proj": 8}})",
                         "t");
  const PeftConfig config = parse_peft_config(raw, "c");
  CHECK(config.unknown_keys == std::vector<std::string>{"lora_dtype"});
  const std::string text = peft_config_text(config);
  const Json again = Json::parse(text, "again");
  CHECK(again.at("layers_to_transform") == raw.at("layers_to_transform"));
  CHECK(again.at("peft_version").as_string() == "0.11.1");
  CHECK(again.at("lora_dtype").as_string() == "fp32");
  CHECK(parse_peft_config(again, "again").rank_of("a.v_proj") == 2);
  CHECK(parse_peft_config(golden_config(), "c").unknown_keys.empty());
}

TEST_CASE("peft: tensors with a live model's names are the adapter") {
  const PeftAdapter expected(golden("adapter_llama3"));
  TempDir dir;
  std::filesystem::copy(golden("adapter_llama3") / "adapter_config.json",
                        dir / "adapter_config.json");
  std::vector<NewTensor> tensors;
  for (const StoredTensor& tensor : expected.tensors().tensors()) {
    std::string name = tensor.name;
    name.insert(name.size() - std::string(".weight").size(), ".default");
    tensors.push_back({name, *tensor.dtype, tensor.shape});
  }
  SafetensorsWriter writer(dir / "adapter_model.safetensors", tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<uint8_t> bytes(tensors[i].bytes());
    expected.tensors().read_range(expected.tensors().tensors()[i], 0, bytes);
    writer.write(tensors[i].name, bytes);
  }
  writer.finish();
  const PeftAdapter adapter(dir.path());
  REQUIRE(adapter.modules().size() == expected.modules().size());
  for (size_t i = 0; i < adapter.modules().size(); ++i) {
    const PeftModule &a = adapter.modules()[i], &b = expected.modules()[i];
    CHECK(a.module == b.module);
    CHECK(adapter.tensors().read_f32(*a.a) == expected.tensors().read_f32(*b.a));
    CHECK(adapter.tensors().read_f32(*a.b) == expected.tensors().read_f32(*b.b));
  }
}

TEST_CASE("peft: what is not supported is refused by name") {
  refuse("fan_in_fan_out", "true", "fan_in_fan_out is true");
  refuse("layers_to_transform", "[-1]", "layers_to_transform holds -1");
  refuse("layers_to_transform", "\"1\"", "layers_to_transform is");
  refuse("exclude_modules", "[3]", "exclude_modules holds 3");
  refuse("use_dora", "true", "merge it into its base model with PEFT");
  refuse("bias", "\"lora_only\"", "merge it into its base model with PEFT");
  refuse("modules_to_save", "[\"embed_tokens\"]", "merge it into its base model with PEFT");
  refuse("peft_type", "\"IA3\"", "peft_type is \"IA3\"; only LORA");
  refuse("peft_type", nullptr, "peft_type is missing");
  refuse("use_dora", "true", "use_dora is true, which is not supported");
  refuse("lora_bias", "true", "lora_bias is true");
  refuse("use_qalora", "true", "use_qalora is true");
  refuse("bias", "\"all\"", "bias is \"all\"");
  refuse("modules_to_save", "[\"lm_head\"]",
         "modules_to_save is [\"lm_head\"], which is not supported");
  refuse("trainable_token_indices", "[1]", "trainable_token_indices is [1]");
  refuse("target_parameters", "[\"x\"]", "target_parameters is");
  refuse("layer_replication", "[[0,1]]", "layer_replication is");
  refuse("init_lora_weights", "\"pissa\"",
         "init_lora_weights is \"pissa\", which changes the base model's weights");
  refuse("task_type", "\"SEQ_CLS\"", "task_type is \"SEQ_CLS\"");
  refuse("r", "0", "r is 0");
  refuse("r", "\"8\"", "r is \"8\", not an integer");
  refuse("lora_alpha", "-1", "lora_alpha is -1, not above 0");
  refuse("lora_dropout", "1.0", "lora_dropout is not between");
  refuse("target_modules", nullptr, "target_modules is missing");
  refuse("target_modules", "[]", "target_modules is empty");
  refuse("target_modules", "[1]", "target_modules holds 1, not a string");
  refuse("rank_pattern", "[1]", "rank_pattern is [1], not an object");
  refuse("rank_pattern", R"({"x": 0})", "rank_pattern.x is 0");
  CHECK(with("modules_to_save", "[]").r == 4);
  CHECK(with("init_lora_weights", "\"gaussian\"").r == 4);
}

TEST_CASE("peft: broken tensors") {
  const std::string m = "base_model.model.model.layers.0.mlp.up_proj";
  const NewTensor a{m + ".lora_A.weight", DType::kF32, {4, 8}},
      b{m + ".lora_B.weight", DType::kF32, {6, 4}};
  refuse_tensors({}, "holds no adapter tensors");
  refuse_tensors({a}, "lora_A.weight: has no lora_B beside it");
  refuse_tensors({b}, "lora_B.weight: has no lora_A beside it");
  refuse_tensors({a, {b.name, DType::kF32, {6, 5}}},
                 "lora_B.weight: has shape [6, 5], which does not fit lora_A's [4, 8]");
  refuse_tensors({{a.name, DType::kF32, {5, 8}}, {b.name, DType::kF32, {6, 5}}},
                 "has rank 5, but adapter_config.json says 4");
  refuse_tensors({{a.name, DType::kF32, {4}}, b}, "lora_A.weight: has shape [4], not a matrix");
  refuse_tensors({{a.name, DType::kI32, {4, 8}}, b}, "lora_A.weight: has type I32");
  refuse_tensors({a, b, {m + ".lora_magnitude_vector", DType::kF32, {6}}}, "belongs to DoRA");
  refuse_tensors({a, b, {m + ".lora_B.bias", DType::kF32, {6}}}, "lora_bias");
  refuse_tensors(
      {a, b, {"base_model.model.model.embed_tokens.lora_embedding_A", DType::kF32, {4, 6}}},
      "adapts an embedding");
  refuse_tensors({a, b, {"base_model.model.lm_head.weight", DType::kF32, {4, 6}}},
                 "modules_to_save");
  refuse_tensors({a, b, {m + ".lora_A.default.weight", DType::kF32, {4, 8}}},
                 "belongs to another adapter than the tensors before it");
  refuse_tensors({{m + ".lora_A.one.weight", DType::kF32, {4, 8}},
                  {m + ".lora_B.two.weight", DType::kF32, {6, 4}}},
                 "belongs to another adapter");
  for (const char* name :
       {"up_proj.lora_A.weight", "base_model.model.up_proj.lora_A.a.b.weight",
        "base_model.model.up_proj.lora_A..weight", "base_model.model.up_proj.lora_A.default",
        "base_model.model.lora_A.weight", "base_model.model..lora_A"}) {
    CAPTURE(name);
    refuse_tensors({{name, DType::kF32, {4, 8}}}, "is no ");
  }
  refuse_tensors({a, b, {m + ".lora_B.default.bias", DType::kF32, {6}}}, "lora_bias");
  refuse_tensors(
      {a, b, {"base_model.model.model.embed_tokens.base_layer.weight", DType::kF32, {4, 6}}},
      "adapts an embedding");
  const std::string other = "base_model.model.model.layers.0.mlp.router";
  refuse_tensors(
      {a,
       b,
       {other + ".lora_A.weight", DType::kF32, {4, 8}},
       {other + ".lora_B.weight", DType::kF32, {6, 4}}},
      "router.lora_A.weight: adapts a module that target_modules of adapter_config.json does not");
}

TEST_CASE("peft: absent files") {
  TempDir dir;
  LF_CHECK_ERROR(PeftAdapter(dir / "none"), ErrorCode::kNoInput, "none: is no folder");
  LF_CHECK_ERROR(PeftAdapter(dir.path()), ErrorCode::kNoInput, "adapter_config.json");
  loongforge::test::write_file(dir / "adapter_config.json", golden_config().dump());
  LF_CHECK_ERROR(PeftAdapter(dir.path()), ErrorCode::kNoInput, "adapter_model.safetensors");
  loongforge::test::write_file(dir / "adapter_model.bin", "PK");
  LF_CHECK_ERROR(PeftAdapter(dir.path()), ErrorCode::kBadData, "adapter_model.bin: has 2 bytes");
}

TEST_CASE("peft: an adapter in a torch file is the one in safetensors") {
  const std::filesystem::path folder = loongforge::test::data_dir() / "formats/adapter_llama3";
  const PeftAdapter expected(folder);
  TempDir dir;
  std::filesystem::copy(folder / "adapter_config.json", dir / "adapter_config.json");
  std::vector<std::pair<std::string, std::string>> items, storages;
  for (const StoredTensor& tensor : expected.tensors().tensors()) {
    REQUIRE(tensor.dtype == DType::kF32);
    const std::string key = std::to_string(items.size());
    std::string bytes(tensor.bytes, '\0');
    expected.tensors().read_range(tensor, 0,
                                  {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
    items.emplace_back(tensor.name,
                       loongforge::test::pickle_tensor(
                           loongforge::test::pickle_storage("FloatStorage", key, tensor.elements()),
                           0, tensor.shape, {tensor.shape[1], 1}));
    storages.emplace_back(key, std::move(bytes));
  }
  loongforge::test::write_file(
      dir / "adapter_model.bin",
      loongforge::test::torch_bytes(loongforge::test::pickle_of(items), storages));
  const PeftAdapter adapter(dir.path());
  REQUIRE(adapter.modules().size() == expected.modules().size());
  for (size_t i = 0; i < adapter.modules().size(); ++i) {
    const PeftModule &a = adapter.modules()[i], &b = expected.modules()[i];
    CHECK(a.module == b.module);
    CHECK(adapter.tensors().read_f32(*a.a) == expected.tensors().read_f32(*b.a));
    CHECK(adapter.tensors().read_f32(*a.b) == expected.tensors().read_f32(*b.b));
  }
}
