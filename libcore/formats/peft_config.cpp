#include <cmath>
#include <utility>

#include "formats/json_keys.h"
#include "formats/peft.h"
#include "support/regex.h"

namespace loongforge::formats {

using support::Json;
using support::printable;

namespace {

// What would change the mathematics or needs tensors that are not read, with the values that switch
// it off.
void refuse_unsupported(const Keys& keys) {
  if (const std::string type = keys.string("peft_type", ""); type != "LORA") {
    keys.fail("peft_type", type.empty() ? "is missing" : "is \"" + printable(type, 40) + "\"",
              "only LORA adapters can be read");
  }
  if (const std::string bias = keys.string("bias", "none"); bias != "none") {
    keys.fail("bias", "is \"" + printable(bias, 40) + "\"",
              "adapters that train biases are not supported");
  }
  static constexpr const char* kFlags[] = {"use_dora", "lora_bias", "use_qalora", "use_bdlora"};
  for (const char* key : kFlags) {
    const Json* value = keys.find(key);
    if (value != nullptr && !(value->is_bool() && !value->as_bool()))
      keys.fail(key, "is " + shown(*value) + ", which is not supported");
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
    keys.fail(key, "is " + shown(*value) + ", which is not supported");
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

// PEFT's rule: the key is an expression for the whole path or for its end after a dot.
bool pattern_matches(const std::string& key, std::string_view module) {
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
  config.fan_in_fan_out = keys.boolean("fan_in_fan_out", false);
  const Json* targets = keys.find("target_modules");
  if (targets == nullptr) keys.fail("target_modules", "is missing");
  if (targets->is_string()) {
    config.target_regex = targets->as_string();
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
  config.raw = std::move(raw);
  return config;
}

Json peft_config_json(const PeftConfig& config) {
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
                           {"fan_in_fan_out", config.fan_in_fan_out},
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

}  // namespace loongforge::formats
