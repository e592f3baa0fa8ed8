#include "models/registry.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "support/printable.h"

namespace loongforge::models {

// A new family: its declaration here, its line in the table, its file.
extern const Family kLlama, kMistral, kQwen2, kQwen3;

namespace {

constexpr const Family* kFamilies[] = {
    &kLlama,
    &kMistral,
    &kQwen2,
    &kQwen3,
};

bool contains(std::span<const std::string_view> items, std::string_view item) {
  return std::find(items.begin(), items.end(), item) != items.end();
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

}  // namespace

std::span<const Family* const> families() noexcept { return kFamilies; }

std::string known_model_types() {
  std::string text;
  for (const Family* family : kFamilies) {
    for (std::string_view type : family->model_types)
      text += (text.empty() ? "" : ", ") + std::string(type);
  }
  return text;
}

const Family* find_by_model_type(std::string_view model_type) noexcept {
  for (const Family* family : kFamilies) {
    if (contains(family->model_types, model_type)) return family;
  }
  return nullptr;
}

const Family* find_by_gguf_architecture(std::string_view architecture) noexcept {
  for (const Family* family : kFamilies) {
    if (family->config_from_gguf != nullptr && has_gguf_architecture(*family, architecture))
      return family;
  }
  return nullptr;
}

bool has_gguf_architecture(const Family& family, std::string_view architecture) noexcept {
  return contains(family.gguf_architectures, architecture);
}

const Family* find_by_name(std::string_view name) noexcept {
  for (const Family* family : kFamilies) {
    if (family->name == name) return family;
  }
  return nullptr;
}

const Family* find_by_label(std::string_view label) noexcept {
  const std::string text = lower(label);
  for (const Family* family : kFamilies) {
    for (std::string_view begin : family->labels) {
      if (text.starts_with(begin)) return family;
    }
  }
  return nullptr;
}

const Family& choose_family(const std::string& model_type, const std::string& where,
                            std::string_view label) {
  const Family* by_label = find_by_label(label);
  if (model_type.empty()) {
    if (by_label != nullptr) return *by_label;
    throw_bad_data(
        where, "has no model_type, and --model-name \"" + std::string(label) + "\" names no family",
        "known model types: " + known_model_types());
  }
  const Family* by_type = find_by_model_type(model_type);
  if (by_type == nullptr) {
    throw_bad_data(where,
                   "model_type \"" + support::printable(model_type, 60) + "\" is not supported",
                   "known model types: " + known_model_types());
  }
  if (by_label != nullptr && by_label != by_type) {
    throw_usage("--model-name \"" + std::string(label) + "\" names the family " +
                    std::string(by_label->name) + ", " + where + " has model_type " + model_type,
                "give the model a name of its own family, or any other label");
  }
  return *by_type;
}

const Family& choose_family(const formats::HfConfig& config, std::string_view label) {
  return choose_family(config.model_type, config.where, label);
}

std::vector<ExportTensor> same_names(const ir::Model& model) {
  const std::set<std::string_view> companions = model.companion_names();
  std::vector<ExportTensor> out;
  for (const ir::TensorEntry& entry : model.tensors) {
    if (companions.contains(entry.name)) continue;
    if (!entry.alias_of.empty() && !entry.source_had_both) continue;
    out.push_back({entry.name, entry.name});
  }
  return out;
}

}  // namespace loongforge::models
