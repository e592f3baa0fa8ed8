// What a precision means when a model runs (DESIGN 4): which operands, which saved tensors, which
// scales. Data, no code path: the executor reads it, `train` fills it from its flags, a run writes
// describe() into its log. Thread-safety: values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/api.h"
#include "kernels/types.h"

namespace loongforge::quant {

enum class RunPrecision { kFp8, kBf16, kFp32 };  // --fp8_precision e4m3 | bf16 | fp32

// What an FP8 linear does with its activations (--fp8_activations).
enum class Activations {
  kSaved,  // X and dY are bf16 operands; X is saved for dW as E4M3 codes in 1 x 128 blocks
  kOff,    // the same operands; X is saved in bf16
};

enum class ScaleRecipe {
  kBlock,  // just-in-time power-of-two scales: weights 128 x 128, activations 1 x 128
};

struct LF_API Recipe {
  RunPrecision precision = RunPrecision::kFp8;
  Activations activations = Activations::kSaved;
  ScaleRecipe scales = ScaleRecipe::kBlock;
  float scale_factor = 1.0f;  // multiplies amax before a scale is chosen; > 0 and finite

  kernels::Precision operands() const noexcept {
    return precision == RunPrecision::kFp32 ? kernels::Precision::kF32 : kernels::Precision::kBf16;
  }
  // Element of a linear weight that is stored in FP8 here, of a saved linear input, and of tensors
  // between nodes.
  kernels::Elem weight_elem() const noexcept;
  kernels::Elem saved_elem() const noexcept;
  kernels::Elem edge_elem() const noexcept;
  std::string describe() const;  // one line of text
};

// Spellings of the flags; nullopt when unknown. "fp8" is accepted for e4m3.
LF_API std::optional<RunPrecision> parse_run_precision(std::string_view text) noexcept;
LF_API std::optional<Activations> parse_activations(std::string_view text) noexcept;
LF_API std::string_view run_precision_name(RunPrecision precision) noexcept;
// Throws Error(kUsage) when scale_factor is not a positive finite number.
LF_API void check_recipe(const Recipe& recipe);

}  // namespace loongforge::quant
