#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "formats/json_keys.h"
#include "formats/peft.h"
#include "support/regex.h"

namespace loongforge::formats {

using support::Json;
using support::printable;

namespace {

constexpr const char* kMergeHint =
    "merge it into its base model with PEFT (merge_and_unload) and convert that";

// What would change the mathematics or needs tensors that are not read, with the values that switch
// it off.
void refuse_unsupported(const Keys& keys) {
  if (const std::string type = keys.string("peft_type", ""); type != "LORA") {
    keys.fail("peft_type", type.empty() ? "is missing" : "is \"" + printable(type, 40) + "\"",
              "only LORA adapters can be read: merge this one into its base model with PEFT and "
              "convert that");
  }
  if (const std::string bias = keys.string("bias", "none"); bias != "none") {
    keys.fail("bias",
              "is \"" + printable(bias, 40) + "\": adapters that train biases are not supported",
              kMergeHint);
  }
  static constexpr const char* kFlags[] = {"use_dora", "lora_bias", "use_qalora", "use_bdlora"};
  for (const char* key : kFlags) {
    const Json* value = keys.find(key);
    if (value != nullptr && !(value->is_bool() && !value->as_bool()))
      keys.fail(key, "is " + shown(*value) + ", which is not supported", kMergeHint);
  }
  if (keys.boolean("fan_in_fan_out", false)) {
    keys.fail("fan_in_fan_out", "is true: it is for layers that store their weight transposed",
              "no family here has them; set it to false");
  }
  // Null, an empty list or an empty object: not used.
  static constexpr const char* kParts[] = {
      "modules_to_save", "trainable_token_indices", "target_parameters", "layer_replication",
      "megatron_config", "alora_invocation_tokens", "arrow_config",      "kasa_config",
      "velora_config",   "monteclora_config"};
  for (const char* key : kParts) {
    const Json* value = keys.find(key);
    if (value == nullptr || (value->is_array() && value->as_array().empty()) ||
        (value->is_object() && value->as_object().empty())) {
      continue;
    }
    keys.fail(key, "is " + shown(*value) + ", which is not supported", kMergeHint);
  }
  // These initialisations change the base weights, so that the adapter does not fit the model it
  // names.
  const Json* init = keys.find("init_lora_weights");
  if (init != nullptr && !init->is_bool()) {
    const std::string name = keys.string("init_lora_weights", "");
    if (name != "gaussian" && name != "eva" && name != "orthogonal") {
      keys.fail("init_lora_weights",
                "is \"" + printable(name, 40) + "\", which changes the base model's weights",
                "convert the adapter to a plain LoRA first");
    }
  }
}

const Json* pattern_object(const Keys& keys, const char* key) {
  const Json* value = keys.find(key);
  if (value != nullptr && !value->is_object())
    keys.fail(key, "is " + shown(*value) + ", not an object");
  return value;
}

// Keys that PEFT 0.21 writes and that change nothing here; what stands above is judged there.
std::vector<std::string> unknown_keys(const Json& raw) {
  std::vector<std::string> unknown;
  static constexpr std::string_view kKnown[] = {"alpha_pattern",
                                                "auto_mapping",
                                                "base_model_name_or_path",
                                                "bias",
                                                "corda_config",
                                                "ensure_weight_tying",
                                                "eva_config",
                                                "exclude_modules",
                                                "fan_in_fan_out",
                                                "inference_mode",
                                                "init_lora_weights",
                                                "layers_pattern",
                                                "layers_to_transform",
                                                "loftq_config",
                                                "lora_alpha",
                                                "lora_bias",
                                                "lora_dropout",
                                                "lora_ga_config",
                                                "megatron_core",
                                                "modules_to_save",
                                                "peft_type",
                                                "peft_version",
                                                "qalora_group_size",
                                                "r",
                                                "rank_pattern",
                                                "revision",
                                                "runtime_config",
                                                "target_modules",
                                                "task_type",
                                                "use_rslora"};
  for (const auto& [key, value] : raw.as_object()) {
    const bool off = value.is_null() || (value.is_bool() && !value.as_bool()) ||
                     (value.is_array() && value.as_array().empty()) ||
                     (value.is_object() && value.as_object().empty());
    if (off || std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown)) continue;
    unknown.push_back(printable(key, 60));
  }
  return unknown;
}

std::vector<int64_t> layer_numbers(const Keys& keys) {
  std::vector<int64_t> layers = keys.ids("layers_to_transform");
  for (int64_t layer : layers) {
    if (layer < 0) keys.fail("layers_to_transform", "holds " + std::to_string(layer));
  }
  return layers;
}

// A list of names, or one name.
std::vector<std::string> names(const Keys& keys, const char* key) {
  const Json* value = keys.find(key);
  if (value != nullptr && value->is_string()) return {value->as_string()};
  return keys.strings(key);
}

bool named(const std::vector<std::string>& list, std::string_view module) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& each) {
    return module == each || (module.size() > each.size() && module.ends_with(each) &&
                              module[module.size() - each.size() - 1] == '.');
  });
}

// Whether the expression matches the module's path; from the beginning on: end is set to where.
bool matches(const std::string& expression, std::string_view module, size_t* end) {
  const support::Regex regex(expression, "adapter_config.json");
  support::Regex::Matcher matcher;
  size_t begin;
  return regex.find(matcher, module, 0, &begin, end);
}

bool full_match(const std::string& expression, std::string_view module) {
  size_t end;
  return matches("\\A(?:" + expression + ")\\z", module, &end);
}

// The first number in the path that stands as a component of its own behind a name (one of
// patterns, when given); -1: none.
int64_t layer_of(const std::vector<std::string>& patterns, std::string_view module) {
  std::vector<std::string> expressions;
  if (patterns.empty()) expressions.push_back("\\A.*?\\.[^.]*\\.[0-9]+\\.");
  for (const std::string& each : patterns)
    expressions.push_back("\\A(?:|.*?\\.)(?:" + each + ")\\.[0-9]+\\.");
  for (const std::string& expression : expressions) {
    size_t end;
    if (!matches(expression, module, &end)) continue;
    const size_t dot = module.rfind('.', end - 2);
    int64_t layer = -1;
    std::from_chars(module.data() + dot + 1, module.data() + end - 1, layer);
    return layer;
  }
  return -1;
}

// PEFT's rule: the key is an expression for the whole path or for its end after a dot.
bool pattern_matches(const std::string& key, std::string_view module) {
  // Most keys are plain paths, and there may be one for every module.
  const bool plain = std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.';
  });
  if (plain) {
    if (key.size() > module.size()) return false;
    const size_t at = module.size() - key.size();
    if (at > 0 && module[at - 1] != '.') return false;
    return std::equal(key.begin(), key.end(), module.begin() + static_cast<std::ptrdiff_t>(at),
                      [](char k, char m) { return k == '.' || k == m; });
  }
  const support::Regex regex("\\A(?:.*\\.)?(?:" + key + ")\\z", "adapter_config.json");
  support::Regex::Matcher matcher;
  size_t begin, end;
  return regex.find(matcher, module, 0, &begin, &end);
}

template <class T>
T by_pattern(const std::vector<std::pair<std::string, T>>& patterns, std::string_view module,
             T otherwise) {
  for (const auto& [key, value] : patterns) {
    if (pattern_matches(key, module)) return value;
  }
  return otherwise;
}

Json number(double value) {
  const bool integral = std::floor(value) == value && std::fabs(value) < 1e15;
  return integral ? Json(static_cast<int64_t>(value)) : Json(value);
}

}  // namespace

bool PeftConfig::targets(std::string_view module) const {
  if (!exclude_regex.empty() && full_match(exclude_regex, module)) return false;
  if (named(exclude_modules, module)) return false;
  if (!target_regex.empty()) {
    if (target_regex == "all-linear") return module != "lm_head";
    return full_match(target_regex, module);
  }
  if (std::find(target_modules.begin(), target_modules.end(), module) != target_modules.end())
    return true;
  if (!named(target_modules, module)) return false;
  if (layers_to_transform.empty()) return true;
  const int64_t layer = layer_of(layers_pattern, module);
  return std::find(layers_to_transform.begin(), layers_to_transform.end(), layer) !=
         layers_to_transform.end();
}

int64_t PeftConfig::rank_of(std::string_view module) const {
  return by_pattern(rank_pattern, module, r);
}

double PeftConfig::alpha_of(std::string_view module) const {
  return by_pattern(alpha_pattern, module, lora_alpha);
}

double PeftConfig::scaling_of(std::string_view module) const {
  const auto rank = static_cast<double>(rank_of(module));
  return alpha_of(module) / (use_rslora ? std::sqrt(rank) : rank);
}

PeftConfig parse_peft_config(Json raw, const std::string& where) {
  if (!raw.is_object())
    throw_bad_data(where, std::string("is JSON of type ") + raw.type_name() + ", not an object");
  const Keys keys(raw, where);
  refuse_unsupported(keys);
  PeftConfig config;
  config.base_model_name_or_path = keys.string("base_model_name_or_path", "");
  config.task_type = keys.string("task_type", "");
  if (!config.task_type.empty() && config.task_type != "CAUSAL_LM") {
    keys.fail("task_type", "is \"" + printable(config.task_type, 40) + "\"",
              "only CAUSAL_LM is supported");
  }
  config.r = keys.size("r").value_or(8);
  config.lora_alpha = keys.positive("lora_alpha").value_or(8.0);
  config.lora_dropout = keys.number("lora_dropout").value_or(0.0);
  if (!(config.lora_dropout >= 0.0 && config.lora_dropout < 1.0))
    keys.fail("lora_dropout", "is not between 0 and 1");
  config.use_rslora = keys.boolean("use_rslora", false);
  config.layers_to_transform = layer_numbers(keys);
  config.layers_pattern = names(keys, "layers_pattern");
  if (const Json* excluded = keys.find("exclude_modules");
      excluded != nullptr && excluded->is_string()) {
    config.exclude_regex = excluded->as_string();
  } else {
    config.exclude_modules = keys.strings("exclude_modules");
  }
  const Json* targets = keys.find("target_modules");
  if (targets == nullptr) keys.fail("target_modules", "is missing");
  if (targets->is_string()) {
    config.target_regex = targets->as_string();
    std::string lower = config.target_regex;
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (lower == "all-linear") config.target_regex = lower;
  } else {
    config.target_modules = keys.strings("target_modules");
  }
  if (config.target_modules.empty() && config.target_regex.empty())
    keys.fail("target_modules", "is empty");
  if (const Json* ranks = pattern_object(keys, "rank_pattern")) {
    const Keys inner(*ranks, where, "rank_pattern.");
    for (const auto& [key, value] : ranks->as_object())
      config.rank_pattern.emplace_back(key, inner.required_size(key));
  }
  if (const Json* alphas = pattern_object(keys, "alpha_pattern")) {
    const Keys inner(*alphas, where, "alpha_pattern.");
    for (const auto& [key, value] : alphas->as_object()) {
      config.alpha_pattern.emplace_back(key, inner.required_positive(key, ""));
    }
  }
  config.unknown_keys = unknown_keys(raw);
  config.raw = std::move(raw);
  return config;
}

namespace {

Json new_config_json(const PeftConfig& config);

bool sorted(const Json& object) {
  const auto& members = object.as_object();
  return std::is_sorted(members.begin(), members.end(),
                        [](const auto& a, const auto& b) { return a.first < b.first; });
}

}  // namespace

std::string peft_config_text(const PeftConfig& config) {
  const Json json = peft_config_json(config);
  // The first pattern that matches counts: their order is kept where it is not the sorted one.
  return json.dump(2, sorted(json.at("rank_pattern")) && sorted(json.at("alpha_pattern")));
}

Json peft_config_json(const PeftConfig& config) {
  Json fresh = new_config_json(config);
  if (!config.raw.is_object()) return fresh;
  Json out = config.raw;
  static constexpr const char* kOurs[] = {"alpha_pattern", "inference_mode", "lora_alpha",
                                          "lora_dropout",  "peft_type",      "r",
                                          "rank_pattern",  "target_modules", "use_rslora"};
  for (const char* key : kOurs) out.set(key, fresh.at(key));
  if (!config.base_model_name_or_path.empty())
    out.set("base_model_name_or_path", config.base_model_name_or_path);
  return out;
}

namespace {

Json new_config_json(const PeftConfig& config) {
  Json targets(config.target_regex);
  if (config.target_regex.empty())
    targets = Json(Json::Array(config.target_modules.begin(), config.target_modules.end()));
  Json ranks = Json::object(), alphas = Json::object();
  for (const auto& [key, value] : config.rank_pattern) ranks.set(key, value);
  for (const auto& [key, value] : config.alpha_pattern) alphas.set(key, number(value));
  const auto text = [](const std::string& value) { return value.empty() ? Json() : Json(value); };
  // The keys of PEFT 0.21, in byte order.
  return Json(Json::Object{{"alora_invocation_tokens", nullptr},
                           {"alpha_pattern", alphas},
                           {"arrow_config", nullptr},
                           {"auto_mapping", nullptr},
                           {"base_model_name_or_path", text(config.base_model_name_or_path)},
                           {"bias", "none"},
                           {"corda_config", nullptr},
                           {"ensure_weight_tying", false},
                           {"eva_config", nullptr},
                           {"exclude_modules", nullptr},
                           {"fan_in_fan_out", false},
                           {"inference_mode", true},
                           {"init_lora_weights", true},
                           {"kasa_config", nullptr},
                           {"layer_replication", nullptr},
                           {"layers_pattern", nullptr},
                           {"layers_to_transform", nullptr},
                           {"loftq_config", Json::object()},
                           {"lora_alpha", number(config.lora_alpha)},
                           {"lora_bias", false},
                           {"lora_dropout", config.lora_dropout},
                           {"lora_ga_config", nullptr},
                           {"megatron_config", nullptr},
                           {"megatron_core", "megatron.core"},
                           {"modules_to_save", nullptr},
                           {"monteclora_config", nullptr},
                           {"peft_type", "LORA"},
                           {"peft_version", "0.21.2"},
                           {"qalora_group_size", 16},
                           {"r", config.r},
                           {"rank_pattern", ranks},
                           {"revision", nullptr},
                           {"target_modules", targets},
                           {"target_parameters", nullptr},
                           {"task_type", text(config.task_type)},
                           {"trainable_token_indices", nullptr},
                           {"use_bdlora", nullptr},
                           {"use_dora", false},
                           {"use_qalora", false},
                           {"use_rslora", config.use_rslora},
                           {"velora_config", nullptr}});
}

}  // namespace

}  // namespace loongforge::formats
