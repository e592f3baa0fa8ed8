// What a precision means when a model runs (DESIGN 4): which operands, which saved tensors, which
// scales. Data, no code path: the executor reads it, `train` fills it from its flags, a run writes
// describe() into its log. Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.h"
#include "kernels/types.h"

namespace loongforge::quant {

// --fp8_precision e4m3 | e5m2 | hybrid | bf16 | fp32. hybrid: E4M3, gradients E5M2.
enum class RunPrecision { kFp8, kE5M2, kHybrid, kBf16, kFp32 };

// What an FP8 linear does with its activations (--fp8_activations).
enum class Activations {
  kSaved,    // X and dY are bf16 operands; X is saved for dW as FP8 codes
  kCompute,  // X and dY are rounded to FP8 before use: one set of codes for forward, dX and dW
  kOff,      // bf16 operands; X is saved in bf16
};

// How scales are chosen (--fp8_recipe). Powers of two always; a block's exponent is rounded up.
enum class ScaleRecipe {
  kBlock,          // just in time: weights 128 x 128, activations 1 x 128
  kTensorCurrent,  // just in time, one per tensor
  kDelayed,        // activations: one per tensor, of the largest value in the steps before;
                   // weights, which are known before they are rounded, as kTensorCurrent
};

// --fp8_scale_override PATTERN=F: F instead of scale_factor where a layer's name matches.
struct ScaleOverride {
  std::string pattern;
  float factor = 1.0f;
};

struct LF_API Recipe {
  RunPrecision precision = RunPrecision::kFp8;
  Activations activations = Activations::kSaved;
  ScaleRecipe scales = ScaleRecipe::kBlock;
  int64_t window = 128;        // kDelayed: steps that are looked back
  bool adaptive_bias = false;  // kDelayed: the gradients' exponent by their histogram
  float scale_factor = 1.0f;   // multiplies amax before a scale is chosen; > 0 and finite
  std::vector<ScaleOverride> scale_overrides;  // the first that matches counts

  bool fp8() const noexcept { return precision < RunPrecision::kBf16; }
  kernels::Precision operands() const noexcept {
    return precision == RunPrecision::kFp32 ? kernels::Precision::kF32 : kernels::Precision::kBf16;
  }
  // Element of a linear weight that is stored in FP8 here, of X where it is rounded, of dY where it
  // is rounded, and of tensors between nodes.
  kernels::Elem weight_elem() const noexcept;
  kernels::Elem input_elem() const noexcept;
  kernels::Elem gradient_elem() const noexcept;
  kernels::Elem edge_elem() const noexcept;
  // What amax is multiplied by for a tensor of this layer.
  float factor_of(std::string_view layer) const noexcept;

  // One line of text. nf4_weights: of a model whose linear weights are NF4 and stay so.
  std::string describe(bool nf4_weights = false) const;
  // Everything above as one line of flags: equal lines, equal numbers.
  std::string flags() const;
};

// Spellings of the flags; nullopt when unknown. "fp8" is accepted for e4m3.
LF_API std::optional<RunPrecision> parse_run_precision(std::string_view text) noexcept;
LF_API std::optional<Activations> parse_activations(std::string_view text) noexcept;
LF_API std::optional<ScaleRecipe> parse_scale_recipe(std::string_view text) noexcept;
LF_API std::string_view run_precision_name(RunPrecision precision) noexcept;
LF_API std::string_view activations_name(Activations activations) noexcept;
LF_API std::string_view scale_recipe_name(ScaleRecipe recipe) noexcept;
// "PATTERN=F,PATTERN=F"; Error(kUsage) for a factor that is no positive number.
LF_API std::vector<ScaleOverride> parse_scale_overrides(std::string_view list);
// Throws Error(kUsage) when a factor is not a positive finite number or the window is below 1.
LF_API void check_recipe(const Recipe& recipe);

}  // namespace loongforge::quant
