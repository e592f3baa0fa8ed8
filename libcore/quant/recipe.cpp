#include "quant/recipe.h"

#include <cmath>

#include "base/error.h"

namespace loongforge::quant {

kernels::Elem Recipe::weight_elem() const noexcept {
  switch (precision) {
    case RunPrecision::kFp8:
      return kernels::Elem::kE4M3;
    case RunPrecision::kBf16:
      return kernels::Elem::kBf16;
    case RunPrecision::kFp32:
      break;
  }
  return kernels::Elem::kF32;
}

kernels::Elem Recipe::saved_elem() const noexcept {
  if (precision == RunPrecision::kFp8 && activations == Activations::kSaved)
    return kernels::Elem::kE4M3;
  return edge_elem();
}

kernels::Elem Recipe::edge_elem() const noexcept {
  return precision == RunPrecision::kFp32 ? kernels::Elem::kF32 : kernels::Elem::kBf16;
}

std::string Recipe::describe() const {
  if (precision == RunPrecision::kFp32) return "fp32: every operand, saved tensor and edge is fp32";
  if (precision == RunPrecision::kBf16)
    return "bf16: operands, saved tensors and edges are bf16, sums fp32";
  std::string text =
      "e4m3: linear weights are FP8 in 128 x 128 blocks, operands bf16, sums fp32; inputs saved "
      "for the weight gradient are ";
  text += activations == Activations::kSaved ? "FP8 in 1 x 128 blocks" : "bf16";
  if (scale_factor != 1.0f) text += "; amax times " + std::to_string(scale_factor);
  return text;
}

std::optional<RunPrecision> parse_run_precision(std::string_view text) noexcept {
  if (text == "e4m3" || text == "fp8") return RunPrecision::kFp8;
  if (text == "bf16") return RunPrecision::kBf16;
  if (text == "fp32") return RunPrecision::kFp32;
  return std::nullopt;
}

std::optional<Activations> parse_activations(std::string_view text) noexcept {
  if (text == "saved") return Activations::kSaved;
  if (text == "off") return Activations::kOff;
  return std::nullopt;
}

std::string_view run_precision_name(RunPrecision precision) noexcept {
  switch (precision) {
    case RunPrecision::kFp8:
      return "e4m3";
    case RunPrecision::kBf16:
      return "bf16";
    case RunPrecision::kFp32:
      break;
  }
  return "fp32";
}

void check_recipe(const Recipe& recipe) {
  if (!std::isfinite(recipe.scale_factor) || recipe.scale_factor <= 0.0f) {
    throw_usage("fp8_scale_factor must be a positive number",
                "1 is the default, 1.2 leaves a fifth of headroom");
  }
}

}  // namespace loongforge::quant
