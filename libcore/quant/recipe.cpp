#include "quant/recipe.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "quant/pattern.h"

namespace loongforge::quant {
namespace {

using kernels::Elem;

constexpr RunPrecision kPrecisions[] = {RunPrecision::kFp8, RunPrecision::kE5M2,
                                        RunPrecision::kHybrid, RunPrecision::kBf16,
                                        RunPrecision::kFp32};
constexpr Activations kActivations[] = {Activations::kSaved, Activations::kCompute,
                                        Activations::kOff};
constexpr ScaleRecipe kScales[] = {ScaleRecipe::kBlock, ScaleRecipe::kTensorCurrent,
                                   ScaleRecipe::kDelayed};

std::string number(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return text;
}

std::string elem_name(Elem elem) { return elem == Elem::kE5M2 ? "E5M2" : "E4M3"; }

bool good_factor(float factor) { return std::isfinite(factor) && factor > 0.0f; }

}  // namespace

Elem Recipe::weight_elem() const noexcept {
  if (fp8()) return precision == RunPrecision::kE5M2 ? Elem::kE5M2 : Elem::kE4M3;
  return edge_elem();
}

Elem Recipe::input_elem() const noexcept {
  return precision == RunPrecision::kE5M2 ? Elem::kE5M2 : Elem::kE4M3;
}

Elem Recipe::gradient_elem() const noexcept {
  return precision == RunPrecision::kE5M2 || precision == RunPrecision::kHybrid ? Elem::kE5M2
                                                                                : Elem::kE4M3;
}

Elem Recipe::edge_elem() const noexcept {
  return precision == RunPrecision::kFp32 ? Elem::kF32 : Elem::kBf16;
}

float Recipe::factor_of(std::string_view layer) const noexcept {
  for (const ScaleOverride& each : scale_overrides)
    if (layer_match(each.pattern, layer)) return each.factor;
  return scale_factor;
}

std::string Recipe::describe(bool nf4_weights) const {
  const std::string nf4 = "linear weights are NF4 in blocks of 64";
  const std::string other = nf4_weights ? "; " + nf4 : "";
  if (precision == RunPrecision::kFp32)
    return "fp32: every operand, saved tensor and edge is fp32" + other;
  if (precision == RunPrecision::kBf16)
    return "bf16: operands, saved tensors and edges are bf16, sums fp32" + other;
  const bool block = scales == ScaleRecipe::kBlock;
  const std::string fp8 = std::string(run_precision_name(precision)) + ": linear weights are FP8 " +
                          elem_name(weight_elem()) +
                          (block ? " in 128 x 128 blocks" : " with one scale each");
  // How what is rounded of activations is scaled.
  std::string scaled = block ? " in 1 x 128 blocks" : " with one scale a tensor";
  if (scales == ScaleRecipe::kTensorCurrent) scaled += " by its largest value";
  if (scales == ScaleRecipe::kDelayed)
    scaled += " by the largest value of the last " + std::to_string(window) + " steps";
  const std::string input = elem_name(input_elem());
  std::string text = nf4_weights ? "nf4: " + nf4 : fp8;
  if (activations == Activations::kCompute) {
    text += "; inputs (" + input + ") and gradients (" + elem_name(gradient_elem()) +
            ") are rounded before use" + scaled;
    if (adaptive_bias) text += ", the gradients' by their histogram (adaptive bias)";
    text += "; sums fp32";
  } else {
    const bool saved = activations == Activations::kSaved;
    text += "; operands bf16, sums fp32; inputs saved for the weight gradient are " +
            (saved ? input + scaled : "bf16");
  }
  if (scale_factor != 1.0f) text += "; amax times " + number(scale_factor);
  for (const ScaleOverride& each : scale_overrides)
    text += "; " + each.pattern + ": amax times " + number(each.factor);
  return text;
}

std::string Recipe::flags() const {
  std::string text = "--fp8_precision " + std::string(run_precision_name(precision));
  if (!fp8()) return text;
  text += " --fp8_activations " + std::string(activations_name(activations)) + " --fp8_recipe " +
          std::string(scale_recipe_name(scales));
  if (scales == ScaleRecipe::kDelayed)
    text += " --fp8_dynamic_scale_window " + std::to_string(window);
  if (adaptive_bias) text += " --fp8_adaptive_bias";
  if (scale_factor != 1.0f) text += " --fp8_scale_factor " + number(scale_factor);
  for (const ScaleOverride& each : scale_overrides)
    text += " --fp8_scale_override " + each.pattern + "=" + number(each.factor);
  return text;
}

std::optional<RunPrecision> parse_run_precision(std::string_view text) noexcept {
  if (text == "fp8") return RunPrecision::kFp8;
  for (const RunPrecision each : kPrecisions)
    if (text == run_precision_name(each)) return each;
  return std::nullopt;
}

std::optional<Activations> parse_activations(std::string_view text) noexcept {
  for (const Activations each : kActivations)
    if (text == activations_name(each)) return each;
  return std::nullopt;
}

std::optional<ScaleRecipe> parse_scale_recipe(std::string_view text) noexcept {
  for (const ScaleRecipe each : kScales)
    if (text == scale_recipe_name(each)) return each;
  return std::nullopt;
}

std::string_view run_precision_name(RunPrecision precision) noexcept {
  constexpr std::string_view kNames[] = {"e4m3", "e5m2", "hybrid", "bf16", "fp32"};
  return kNames[static_cast<int>(precision)];
}

std::string_view activations_name(Activations activations) noexcept {
  constexpr std::string_view kNames[] = {"saved", "compute", "off"};
  return kNames[static_cast<int>(activations)];
}

std::string_view scale_recipe_name(ScaleRecipe recipe) noexcept {
  constexpr std::string_view kNames[] = {"block", "tensor-current", "delayed"};
  return kNames[static_cast<int>(recipe)];
}

std::vector<ScaleOverride> parse_scale_overrides(std::string_view list) {
  std::vector<ScaleOverride> overrides;
  for (PatternValue& item : parse_pattern_values(list, "fp8_scale_override")) {
    float factor = 0;
    const char* end = item.value.data() + item.value.size();
    const auto read = std::from_chars(item.value.data(), end, factor);
    if (read.ec != std::errc() || read.ptr != end || !good_factor(factor))
      throw_usage("--fp8_scale_override: \"" + item.value + "\" is no positive number",
                  "as in --fp8_scale_override \"*.down_proj=1.5\"");
    overrides.push_back({std::move(item.pattern), factor});
  }
  return overrides;
}

void check_recipe(const Recipe& recipe) {
  if (!good_factor(recipe.scale_factor))
    throw_usage("--fp8_scale_factor must be a positive number",
                "1 is the default, 1.2 leaves a fifth of headroom");
  for (const ScaleOverride& each : recipe.scale_overrides)
    if (!good_factor(each.factor)) throw_usage("--fp8_scale_override must be a positive number");
  if (recipe.window < 1) throw_usage("--fp8_dynamic_scale_window must be at least 1");
}

}  // namespace loongforge::quant
