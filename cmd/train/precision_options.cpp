#include "cmd/train/precision_options.h"

#include <string>
#include <utility>

#include "base/error.h"

namespace loongforge::cmd {
namespace {

using quant::Recipe;
using quant::RunPrecision;
using quant::ScaleRecipe;

// Delayed scaling is chosen by name, or by the flags that only it has.
void fill_scales(const cli::Options& options, Recipe* recipe, std::vector<std::string>* notes) {
  recipe->scales = *quant::parse_scale_recipe(options.text("fp8_recipe"));
  if (options.has("fp8_dynamic_scale_window"))
    recipe->window = options.integer("fp8_dynamic_scale_window");
  recipe->adaptive_bias = options.flag("fp8_adaptive_bias");
  const bool window = options.has("fp8_dynamic_scale_window");
  if (recipe->scales == ScaleRecipe::kDelayed || !(window || recipe->adaptive_bias)) return;
  const char* flag = window ? "fp8_dynamic_scale_window" : "fp8_adaptive_bias";
  if (options.given("fp8_recipe"))
    throw_usage(options.place(flag) + " contradicts --fp8_recipe " + options.text("fp8_recipe"),
                "it belongs to --fp8_recipe delayed; leave one of them out");
  recipe->scales = ScaleRecipe::kDelayed;
  notes->push_back(std::string("--") + flag + " selects --fp8_recipe delayed");
}

}  // namespace

void fill_precision(const cli::Options& options, train::TrainOptions* result) {
  Recipe& recipe = result->recipe;
  recipe.precision = *quant::parse_run_precision(options.text("fp8_precision"));
  recipe.activations = *quant::parse_activations(options.text("fp8_activations"));
  recipe.scale_factor = static_cast<float>(options.number("fp8_scale_factor"));
  recipe.scale_overrides = quant::parse_scale_overrides(options.text("fp8_scale_override"));
  result->precision_overrides =
      quant::parse_amp_overrides(options.text("precision_override"), "precision_override");
  fill_scales(options, &recipe, &result->precision_notes);
  bool fp8_somewhere = recipe.fp8();
  for (const quant::AmpRule& rule : result->precision_overrides)
    fp8_somewhere |= rule.storage == quant::Storage::kFp8;
  if (!fp8_somewhere)
    options.refuse_given(
        {"fp8_activations", "fp8_recipe", "fp8_dynamic_scale_window", "fp8_adaptive_bias",
         "fp8_scale_factor", "fp8_scale_override", "fp8_stats"},
        "needs an FP8 precision", "use --fp8_precision e4m3, e5m2 or hybrid");
  result->moments = *optim::parse_moment_format(options.text("moments"));
  result->bf16_masters = options.text("master") == "bf16";
  if (result->bf16_masters && result->finetuning_type != train::FinetuningType::kFull)
    throw_usage(options.place("master") + " bf16 needs --finetuning_type full",
                "adapters are few: they keep fp32 masters");
  if (result->bf16_masters && recipe.precision == RunPrecision::kFp32)
    throw_usage(options.place("master") + " bf16 contradicts --fp8_precision fp32",
                "leave one of them out");
  result->fp8_stats = options.flag("fp8_stats");
  result->show_precision = options.flag("show_precision");
  if (result->show_precision && !result->dry_run)
    throw_usage(options.place("show_precision") + " needs --dry_run",
                "it prints a table instead of training");
}

}  // namespace loongforge::cmd
