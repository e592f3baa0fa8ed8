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
  CHECK(recipe.weight_elem() == Elem::kE4M3);
  CHECK(recipe.saved_elem() == Elem::kE4M3);
  CHECK(recipe.edge_elem() == Elem::kBf16);
  CHECK(recipe.operands() == kernels::Precision::kBf16);
  recipe.activations = quant::Activations::kOff;
  CHECK(recipe.saved_elem() == Elem::kBf16);
  recipe.precision = RunPrecision::kBf16;
  CHECK(recipe.weight_elem() == Elem::kBf16);
  recipe.precision = RunPrecision::kFp32;
  CHECK(recipe.weight_elem() == Elem::kF32);
  CHECK(recipe.saved_elem() == Elem::kF32);
  CHECK(recipe.edge_elem() == Elem::kF32);
  CHECK(recipe.operands() == kernels::Precision::kF32);
}

TEST_CASE("spellings and bounds") {
  CHECK(quant::parse_run_precision("e4m3") == RunPrecision::kFp8);
  CHECK(quant::parse_run_precision("fp8") == RunPrecision::kFp8);
  CHECK(quant::run_precision_name(RunPrecision::kFp8) == "e4m3");
  CHECK_FALSE(quant::parse_run_precision("e3m4"));
  CHECK(quant::parse_activations("off") == quant::Activations::kOff);
  CHECK_FALSE(quant::parse_activations("on"));
  Recipe recipe;
  CHECK_NOTHROW(quant::check_recipe(recipe));
  for (float bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    recipe.scale_factor = bad;
    LF_CHECK_ERROR(quant::check_recipe(recipe), ErrorCode::kUsage, "fp8_scale_factor");
  }
}
