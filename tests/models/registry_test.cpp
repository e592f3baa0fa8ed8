#include "models/registry.h"

#include <doctest/doctest.h>

#include <set>

#include "support/expect_error.h"

using namespace loongforge;

TEST_CASE("every family can be found and no two share a name") {
  std::set<std::string_view> names, types;
  for (const models::Family* family : models::families()) {
    CHECK(names.insert(family->name).second);
    CHECK(models::find_by_name(family->name) == family);
    for (std::string_view type : family->model_types) {
      CHECK(types.insert(type).second);
      CHECK(models::find_by_model_type(type) == family);
    }
    const bool has_plan = family->plan != nullptr;
    CHECK(has_plan);
  }
  CHECK(models::find_by_model_type("wombat") == nullptr);
  CHECK(models::find_by_gguf_architecture("wombat") == nullptr);
}

TEST_CASE("model_type decides, a label only where there is none") {
  formats::HfConfig config;
  config.where = "config.json";
  config.model_type = "llama";
  CHECK(models::choose_family(config, "my own name").name == "llama");
  CHECK(models::choose_family(config, "Llama-2-7b").name == "llama");
  config.model_type.clear();
  CHECK(models::choose_family(config, "SmolLM2-135M").name == "llama");
  LF_CHECK_ERROR(models::choose_family(config, "thing"), ErrorCode::kBadData,
                 "known model types: llama");
  config.model_type = "wombat";
  LF_CHECK_ERROR(models::choose_family(config, "Llama-2-7b"), ErrorCode::kBadData, "wombat");
}

TEST_CASE("a model of another kind is named before a key of its configuration is missed") {
  for (const char* type : {"gpt2", "vit", "resnet", "chatglm", "bert"})
    LF_CHECK_ERROR(models::choose_family(type, "config.json", ""), ErrorCode::kBadData,
                   "is not supported; known model types: llama");
}

TEST_CASE("exports carry aliases only where the source had both") {
  ir::Model model;
  const auto add = [&model](const char* name) -> ir::TensorEntry& {
    ir::TensorEntry& entry = model.tensors.emplace_back();
    entry.name = name;
    return entry;
  };
  add("a").crc = "a.crc";
  add("a.crc");
  add("b").alias_of = "a";
  ir::TensorEntry& both = add("c");
  both.alias_of = "a";
  both.source_had_both = true;
  std::vector<std::string> names;
  for (const models::ExportTensor& each : models::same_names(model)) names.push_back(each.name);
  CHECK(names == std::vector<std::string>{"a", "c"});
}
