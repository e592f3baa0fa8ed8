#include "quant/recipe.h"

#include <doctest/doctest.h>

#include <limits>

#include "support/expect_error.h"

using namespace loongforge;
using kernels::Elem;
using quant::Recipe;
using quant::RunPrecision;

TEST_CASE("what a precision means") {
  Recipe recipe;
  CHECK(recipe.fp8());
  CHECK(recipe.weight_elem() == Elem::kE4M3);
  CHECK(recipe.input_elem() == Elem::kE4M3);
  CHECK(recipe.gradient_elem() == Elem::kE4M3);
  CHECK(recipe.edge_elem() == Elem::kBf16);
  CHECK(recipe.operands() == kernels::Precision::kBf16);
  recipe.precision = RunPrecision::kHybrid;
  CHECK(recipe.weight_elem() == Elem::kE4M3);
  CHECK(recipe.input_elem() == Elem::kE4M3);
  CHECK(recipe.gradient_elem() == Elem::kE5M2);
  recipe.precision = RunPrecision::kE5M2;
  CHECK(recipe.weight_elem() == Elem::kE5M2);
  CHECK(recipe.input_elem() == Elem::kE5M2);
  CHECK(recipe.gradient_elem() == Elem::kE5M2);
  recipe.precision = RunPrecision::kBf16;
  CHECK_FALSE(recipe.fp8());
  CHECK(recipe.weight_elem() == Elem::kBf16);
  recipe.precision = RunPrecision::kFp32;
  CHECK(recipe.weight_elem() == Elem::kF32);
  CHECK(recipe.edge_elem() == Elem::kF32);
  CHECK(recipe.operands() == kernels::Precision::kF32);
}

TEST_CASE("spellings and bounds") {
  CHECK(quant::parse_run_precision("e4m3") == RunPrecision::kFp8);
  CHECK(quant::parse_run_precision("fp8") == RunPrecision::kFp8);
  CHECK(quant::run_precision_name(RunPrecision::kFp8) == "e4m3");
  CHECK(quant::parse_run_precision("hybrid") == RunPrecision::kHybrid);
  CHECK_FALSE(quant::parse_run_precision("e3m4"));
  CHECK(quant::parse_activations("off") == quant::Activations::kOff);
  CHECK(quant::parse_activations("compute") == quant::Activations::kCompute);
  CHECK_FALSE(quant::parse_activations("on"));
  CHECK(quant::parse_scale_recipe("tensor-current") == quant::ScaleRecipe::kTensorCurrent);
  CHECK_FALSE(quant::parse_scale_recipe("current"));
  Recipe recipe;
  CHECK_NOTHROW(quant::check_recipe(recipe));
  for (float bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    recipe.scale_factor = bad;
    LF_CHECK_ERROR(quant::check_recipe(recipe), ErrorCode::kUsage, "fp8_scale_factor");
  }
  recipe.scale_factor = 1.0f;
  recipe.window = 0;
  LF_CHECK_ERROR(quant::check_recipe(recipe), ErrorCode::kUsage, "fp8_dynamic_scale_window");
}

TEST_CASE("factors by layer: the first pattern that matches, else the general one") {
  Recipe recipe;
  recipe.scale_factor = 1.25f;
  recipe.scale_overrides = quant::parse_scale_overrides("*.0.mlp.down_proj=2,*.down_proj.grad=0.5");
  CHECK(recipe.factor_of("model.layers.0.mlp.down_proj.weight") == 2.0f);
  CHECK(recipe.factor_of("model.layers.0.mlp.down_proj.grad") == 2.0f);
  CHECK(recipe.factor_of("model.layers.1.mlp.down_proj.grad") == 0.5f);
  CHECK(recipe.factor_of("model.layers.1.mlp.down_proj.weight") == 1.25f);
  CHECK(recipe.factor_of("model.layers.1.mlp.up_proj.weight") == 1.25f);
  for (const char* bad : {"x", "=2", "a=", "a=0", "a=-1", "a=1x", "a=inf", "a=nan"})
    LF_CHECK_ERROR(quant::parse_scale_overrides(bad), ErrorCode::kUsage, "fp8_scale_override");
}

TEST_CASE("a recipe as one line of flags: equal lines for equal numbers only") {
  Recipe recipe;
  CHECK(recipe.flags() == "--fp8_precision e4m3 --fp8_activations saved --fp8_recipe block");
  const std::string plain = recipe.flags();
  recipe.window = 64;  // says nothing to block
  CHECK(recipe.flags() == plain);
  recipe.scales = quant::ScaleRecipe::kDelayed;
  recipe.adaptive_bias = true;
  recipe.scale_factor = 1.2f;
  recipe.scale_overrides = quant::parse_scale_overrides("a.*=2");
  CHECK(recipe.flags() ==
        "--fp8_precision e4m3 --fp8_activations saved --fp8_recipe delayed "
        "--fp8_dynamic_scale_window 64 --fp8_adaptive_bias --fp8_scale_factor 1.20000005 "
        "--fp8_scale_override a.*=2");
  recipe.precision = RunPrecision::kBf16;  // the rest says nothing
  CHECK(recipe.flags() == "--fp8_precision bf16");
}

TEST_CASE("the text of a recipe says what an NF4 model's weights are") {
  quant::Recipe recipe;
  CHECK(recipe.describe().find("linear weights are FP8 E4M3 in 128 x 128 blocks") !=
        std::string::npos);
  for (const RunPrecision precision :
       {RunPrecision::kFp8, RunPrecision::kBf16, RunPrecision::kFp32}) {
    recipe.precision = precision;
    const std::string text = recipe.describe(true);
    CHECK_MESSAGE(text.find("linear weights are NF4 in blocks of 64") != std::string::npos, text);
    CHECK_MESSAGE(text.find("weights are FP8") == std::string::npos, text);
  }
}

TEST_CASE("the text of a recipe: how what is rounded is scaled, and nothing of what is not") {
  quant::Recipe recipe;
  recipe.scales = quant::ScaleRecipe::kDelayed;
  recipe.adaptive_bias = true;
  const std::string weights = "e4m3: linear weights are FP8 E4M3 with one scale each; ";
  CHECK(recipe.describe() == weights +
                                 "operands bf16, sums fp32; inputs saved for the weight gradient "
                                 "are E4M3 with one scale a tensor "
                                 "by the largest value of the last 128 steps");
  CHECK(recipe.describe(true).starts_with(
      "nf4: linear weights are NF4 in blocks of 64; operands bf16"));
  recipe.activations = quant::Activations::kCompute;
  CHECK(recipe.describe() == weights +
                                 "inputs (E4M3) and gradients (E4M3) are rounded before use with "
                                 "one scale a tensor by the largest "
                                 "value of the last 128 steps, the gradients' by their histogram "
                                 "(adaptive bias); sums fp32");
  recipe.activations = quant::Activations::kOff;
  CHECK(recipe.describe() ==
        weights + "operands bf16, sums fp32; inputs saved for the weight gradient are bf16");
  recipe.activations = quant::Activations::kSaved;
  recipe.scales = quant::ScaleRecipe::kTensorCurrent;
  recipe.adaptive_bias = false;
  CHECK(recipe.describe() == weights +
                                 "operands bf16, sums fp32; inputs saved for the weight gradient "
                                 "are E4M3 with one scale a tensor "
                                 "by its largest value");
}
