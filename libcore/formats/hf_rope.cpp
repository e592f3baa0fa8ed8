#include "formats/hf_rope.h"

#include <algorithm>
#include <utility>

#include "formats/json_keys.h"

namespace loongforge::formats {

using support::Json;
using support::printable;

namespace {

// transformers v5 nests one dictionary per layer type where layers differ. Equal ones are one.
const Json* flat_rope_parameters(const Keys& keys, const Json& parameters) {
  const Json* one = nullptr;
  for (const auto& [name, value] : parameters.as_object()) {
    if (!value.is_object()) return &parameters;
    if (one != nullptr && !(*one == value)) {
      keys.fail("rope_parameters", "differ between layer types, which no supported family has");
    }
    one = &value;
  }
  return one == nullptr ? &parameters : one;
}

// Both dictionaries in one file: every value of the old one must stand in the new one.
void check_spellings_agree(const Keys& top, const Json& v4, const Keys& v5) {
  for (const auto& [key, value] : v4.as_object()) {
    if (value.is_null()) continue;
    const Json* other = v5.find(key == "type" ? "rope_type" : key);
    const bool numbers = other != nullptr && other->is_number() && value.is_number();
    if (numbers ? other->as_double() == value.as_double() : other != nullptr && *other == value)
      continue;
    top.fail("rope_scaling." + printable(key, 40),
             "is " + shown(value) + ", but rope_parameters say " +
                 (other == nullptr ? "nothing" : shown(*other)),
             "make them equal or remove one");
  }
}

// Values that the types need beyond theta; everything that is missing is named.
void parse_scaling(const Keys& top, const Keys& scaling, int64_t max_positions, RopeConfig& rope) {
  static constexpr const char* kKnown[] = {"default", "linear",   "dynamic",
                                           "yarn",    "longrope", "llama3"};
  if (std::find(std::begin(kKnown), std::end(kKnown), rope.type) == std::end(kKnown)) {
    scaling.fail("rope_type", "is \"" + printable(rope.type, 40) + "\"",
                 "known: default, linear, dynamic, yarn, longrope, llama3");
  }
  if (rope.type == "default") return;
  const std::string why = ", which rope_type " + rope.type + " needs";
  const std::optional<int64_t> inner = scaling.size("original_max_position_embeddings");
  const std::optional<int64_t> outer = top.size("original_max_position_embeddings");
  scaling.agree("original_max_position_embeddings", inner,
                "the top-level original_max_position_embeddings", outer);
  const std::optional<int64_t> original = inner ? inner : outer;
  const bool factor_from_lengths = original && (rope.type == "yarn" || rope.type == "longrope");
  const std::optional<double> factor = scaling.positive("factor");
  if (!factor && !factor_from_lengths) scaling.fail("factor", "is missing" + why);
  rope.factor =
      factor ? *factor : static_cast<double>(max_positions) / static_cast<double>(*original);
  if (rope.type == "linear" || rope.type == "dynamic") return;
  rope.original_max_position_embeddings = original.value_or(max_positions);
  if (rope.type == "llama3") {
    if (!original) scaling.fail("original_max_position_embeddings", "is missing" + why);
    rope.low_freq_factor = scaling.required_positive("low_freq_factor", why);
    rope.high_freq_factor = scaling.required_positive("high_freq_factor", why);
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      scaling.fail("high_freq_factor", "is " + shown(Json(rope.high_freq_factor)) +
                                           ", not above low_freq_factor, which is " +
                                           shown(Json(rope.low_freq_factor)));
    }
    return;
  }
  rope.attention_factor = scaling.positive("attention_factor");
  if (rope.type == "yarn") {
    rope.beta_fast = scaling.positive("beta_fast").value_or(32.0);
    rope.beta_slow = scaling.positive("beta_slow").value_or(1.0);
    rope.mscale = scaling.number("mscale");
    rope.mscale_all_dim = scaling.number("mscale_all_dim");
    rope.truncate = scaling.boolean("truncate", true);
    return;
  }
  rope.short_factor = scaling.positives("short_factor");
  rope.long_factor = scaling.positives("long_factor");
}

}  // namespace

RopeConfig parse_rope(const Json& raw, const HfConfig& config) {
  const Keys top(raw, config.where);
  const Json* v5 = top.find("rope_parameters");
  const Json* v4 = top.find("rope_scaling");
  if (v5 != nullptr && !v5->is_object())
    top.fail("rope_parameters", "is " + shown(*v5) + ", not an object");
  if (v4 != nullptr && !v4->is_object())
    top.fail("rope_scaling", "is " + shown(*v4) + ", not an object");
  if (v5 != nullptr) v5 = flat_rope_parameters(top, *v5);
  static const Json kEmpty = Json::object();
  const std::string name = v5 != nullptr ? "rope_parameters" : "rope_scaling";
  const Keys scaling(v5 != nullptr ? *v5 : v4 != nullptr ? *v4 : kEmpty, config.where, name + ".");
  if (v5 != nullptr && v4 != nullptr) check_spellings_agree(top, *v4, scaling);
  RopeConfig rope;
  const auto named = [&](const char* key) -> std::optional<std::string> {
    if (scaling.find(key) == nullptr) return std::nullopt;
    return scaling.string(key, "");
  };
  const std::optional<std::string> type = named("rope_type"), old_type = named("type");
  scaling.agree("rope_type", type, name + ".type", old_type);
  if (v4 != nullptr && v5 == nullptr && !type && !old_type && !v4->as_object().empty())
    scaling.fail("rope_type", "is missing");
  rope.type = type ? *type : old_type.value_or("default");
  const std::optional<double> theta = top.positive("rope_theta"),
                              inner_theta = scaling.positive("rope_theta");
  top.agree("rope_theta", theta, name + ".rope_theta", inner_theta);
  rope.theta = theta ? *theta : inner_theta.value_or(10000.0);
  const std::optional<double> partial = top.positive("partial_rotary_factor");
  const std::optional<double> inner_partial = scaling.positive("partial_rotary_factor");
  top.agree("partial_rotary_factor", partial, name + ".partial_rotary_factor", inner_partial);
  rope.partial_rotary_factor = partial ? *partial : inner_partial.value_or(1.0);
  if (rope.partial_rotary_factor > 1.0) top.fail("partial_rotary_factor", "is above 1");
  parse_scaling(top, scaling, config.max_position_embeddings, rope);
  const int64_t rotary =
      static_cast<int64_t>(static_cast<double>(config.head_dim) * rope.partial_rotary_factor);
  if (rotary < 2 || rotary % 2 != 0) {
    top.fail("head_dim", "of " + std::to_string(config.head_dim) + " gives " +
                             std::to_string(rotary) +
                             " rotary dimensions; their number must be even and above 0");
  }
  if (rope.type == "longrope") {
    for (const auto& [key, list] : {std::pair{"short_factor", &rope.short_factor},
                                    std::pair{"long_factor", &rope.long_factor}}) {
      if (list->size() != static_cast<size_t>(rotary / 2)) {
        scaling.fail(key, "has " + std::to_string(list->size()) +
                              " values, not half the rotary dimensions, " +
                              std::to_string(rotary / 2));
      }
    }
  }
  return rope;
}

Json RopeConfig::to_json() const {
  Json out = Json::object();
  out.set("rope_type", type);
  out.set("rope_theta", theta);
  if (partial_rotary_factor != 1.0) out.set("partial_rotary_factor", partial_rotary_factor);
  if (type == "default") return out;
  out.set("factor", factor);
  if (original_max_position_embeddings > 0)
    out.set("original_max_position_embeddings", original_max_position_embeddings);
  if (type == "llama3") {
    out.set("low_freq_factor", low_freq_factor);
    out.set("high_freq_factor", high_freq_factor);
  }
  if (attention_factor) out.set("attention_factor", *attention_factor);
  if (type == "yarn") {
    out.set("beta_fast", beta_fast);
    out.set("beta_slow", beta_slow);
    if (mscale) out.set("mscale", *mscale);
    if (mscale_all_dim) out.set("mscale_all_dim", *mscale_all_dim);
    out.set("truncate", truncate);
  }
  if (type == "longrope") {
    const auto list = [](const std::vector<double>& values) {
      return Json(Json::Array(values.begin(), values.end()));
    };
    out.set("short_factor", list(short_factor));
    out.set("long_factor", list(long_factor));
  }
  return out;
}

}  // namespace loongforge::formats
