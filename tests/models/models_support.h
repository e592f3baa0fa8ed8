// Plans of the golden families, for the tests of models.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "models/registry.h"
#include "support/checkpoint_files.h"
#include "support/expect_error.h"

namespace loongforge::test {

inline models::ModelPlan plan_of(const std::filesystem::path& folder,
                                 const formats::HfConfig& config) {
  const auto source = formats::open_tensor_source(folder);
  models::ModelPlan plan =
      models::choose_family(config, "").plan(config, *source, models::SourceNames::kHuggingFace);
  for (models::PlannedTensor& tensor : plan.tensors)
    tensor.source = nullptr;  // the source ends here
  for (models::PlannedAlias& alias : plan.aliases) alias.source = nullptr;
  return plan;
}

inline models::ModelPlan plan_of(const std::string& family) {
  const std::filesystem::path folder = model_dir(family) / "checkpoint";
  return plan_of(folder, formats::read_hf_config(folder / "config.json"));
}

// A golden family's plan with some keys of its configuration changed, and one taken out.
using Changes = std::vector<std::pair<const char*, support::Json>>;
inline models::ModelPlan plan_with(const std::string& family, const Changes& changes,
                                   const char* erased = nullptr) {
  const std::filesystem::path folder = model_dir(family) / "checkpoint";
  support::Json config = load_config(folder);
  for (const auto& [key, value] : changes) config.set(key, value);
  if (erased != nullptr) config.erase(erased);
  return plan_of(folder, formats::parse_hf_config(config, "config.json"));
}

inline void refuse(const std::string& family, const char* key, support::Json value,
                   const char* text) {
  LF_CHECK_ERROR(plan_with(family, {{key, value}}), ErrorCode::kBadData, text);
}

inline const ir::Node& node(const models::ModelPlan& plan, std::string_view name) {
  for (const ir::Node& each : plan.graph.nodes) {
    if (each.name == name) return each;
  }
  FAIL("no node " << name);
  throw 0;
}

// The window of a layer's attention.
inline int64_t window_of(const models::ModelPlan& plan, int layer) {
  return node(plan, "layers." + std::to_string(layer) + ".self_attn.attention")
      .attrs.get_int("window", 0);
}

inline support::Json json(const char* text) { return support::Json::parse(text, "test"); }

}  // namespace loongforge::test
