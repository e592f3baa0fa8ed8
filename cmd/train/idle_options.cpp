#include "cmd/train/idle_options.h"

#include <initializer_list>

#include "train/training_data.h"

namespace loongforge::cmd {
namespace {

using quant::Activations;
using quant::RunPrecision;
using quant::ScaleRecipe;
using train::Strategy;
using train::TrainOptions;

// What a run does, as far as an option can count in it. With eval_only and preview the options of
// training may stand beside: they are those of a run that is looked at.
enum Mode : unsigned { kTrain = 1, kEvaluate = 2, kPreview = 4 };

unsigned mode_of(const TrainOptions& run) {
  return run.preview > 0 ? kPreview : run.eval_only ? kEvaluate : kTrain;
}

bool several_datasets(const TrainOptions& run) {
  return train::dataset_names(run.dataset).size() > 1;
}
bool warms_up(const TrainOptions& run) { return run.lr_scheduler_type != "constant"; }
bool evaluates(const TrainOptions& run) { return run.eval_strategy != Strategy::kNo; }
bool has_prompts(const TrainOptions& run) { return !run.sample_prompts.empty(); }
bool computes(const TrainOptions& run) { return run.recipe.activations == Activations::kCompute; }

struct Rule {
  unsigned modes;
  std::initializer_list<const char*> options;
  bool (*counts)(const TrainOptions& run);
  const char* why_not;
};

const Rule kRules[] = {
    {kTrain | kPreview,
     {"mix_strategy", "dataset_weights"},
     several_datasets,
     "there is one dataset"},
    {kEvaluate,
     {"streaming"},
     [](const TrainOptions& run) { return run.val_size > 0; },
     "an evaluation reads its dataset whole"},
    {kEvaluate,
     {"dataset"},
     [](const TrainOptions& run) { return run.eval_dataset.empty(); },
     "--eval_dataset is what is evaluated"},
    {kTrain | kEvaluate,
     {"tokenized_path"},
     [](const TrainOptions& run) { return !run.streaming || !run.eval_dataset.empty(); },
     "a stream is not kept"},
    {kEvaluate,
     {"lora_rank", "lora_alpha", "lora_dropout", "lora_target", "use_rslora"},
     [](const TrainOptions&) { return false; },
     "an evaluation makes no adapter"},
    {kTrain,
     {"warmup_ratio"},
     [](const TrainOptions& run) { return run.warmup_steps == 0; },
     "--warmup_steps counts over it"},
    {kTrain, {"warmup_ratio", "warmup_steps"}, warms_up, "--lr_scheduler_type constant has none"},
    {kTrain,
     {"num_train_epochs"},
     [](const TrainOptions& run) { return run.max_steps <= 0; },
     "--max_steps counts over it"},
    {kTrain | kEvaluate,
     {"fp8_precision"},
     [](const TrainOptions& run) {
       return run.recipe.precision != RunPrecision::kHybrid || computes(run);
     },
     "hybrid rounds gradients to E5M2, which only --fp8_activations compute rounds: this run "
     "equals "
     "e4m3"},
    {kTrain,
     {"fp8_adaptive_bias"},
     computes,
     "it fits the scales of gradients, which only --fp8_activations compute rounds"},
    {kTrain,
     {"fp8_recipe", "fp8_dynamic_scale_window"},
     [](const TrainOptions& run) {
       return run.recipe.scales != ScaleRecipe::kDelayed ||
              run.recipe.activations != Activations::kOff;
     },
     "delayed scales activations, which --fp8_activations off leaves in bf16: weights are scaled "
     "by "
     "their present values"},
    {kEvaluate,
     {"fp8_adaptive_bias", "fp8_dynamic_scale_window", "fp8_stats", "fp8_overflow_log_level"},
     [](const TrainOptions&) { return false; },
     "an evaluation has no steps to look back on"},
    {kTrain,
     {"fp8_overflow_log_level"},
     [](const TrainOptions& run) { return run.recipe.fp8() || !run.precision_overrides.empty(); },
     "nothing is rounded to FP8"},
    {kTrain,
     {"probe"},
     [](const TrainOptions& run) { return !run.show_precision; },
     "--show_precision prints its table and stops"},
    {kTrain, {"eval_dataset", "eval_on_start"}, evaluates, "the run does not evaluate"},
    {kTrain,
     {"per_device_eval_batch_size"},
     [](const TrainOptions& run) {
       return evaluates(run) && (!run.eval_dataset.empty() || run.val_size > 0);
     },
     "the run does not evaluate"},
    {kTrain | kEvaluate,
     {"sample_max_new_tokens", "sample_temperature", "sample_top_p", "sample_top_k"},
     has_prompts,
     "there are no --sample_prompts"},
    {kTrain,
     {"save_total_limit"},
     [](const TrainOptions& run) {
       return run.save_strategy != Strategy::kNo || !run.resume_from_checkpoint.empty();
     },
     "--save_strategy no writes one checkpoint"},
    {kTrain,
     {"greater_is_better"},
     [](const TrainOptions& run) { return run.track_best; },
     "nothing asks for the best model"},
};

// Flags, environment and a configuration are given for this run; a configuration or environment
// beside eval_only or preview is that of another.
bool said(const cli::Options& options, const char* name, unsigned mode) {
  return mode == kTrain ? options.given(name) : options.source(name) == cli::Source::kFlag;
}

}  // namespace

std::vector<std::string> without_effect(const cli::Options& options, const TrainOptions& run) {
  const unsigned mode = mode_of(run);
  std::vector<std::string> lines;
  std::set<std::string> told;
  for (const Rule& rule : kRules) {
    if ((rule.modes & mode) == 0 || rule.counts(run)) continue;
    std::string names;
    for (const char* name : rule.options) {
      if (!said(options, name, mode) || !told.insert(name).second) continue;
      names += (names.empty() ? "" : ", ") + options.place(name);
    }
    if (names.empty()) continue;
    const bool several = names.find(", ") != std::string::npos;
    lines.push_back(names + (several ? " have no effect: " : " has no effect: ") + rule.why_not);
  }
  return lines;
}

std::set<std::string> options_with_effect_rules() {
  std::set<std::string> names;
  for (const Rule& rule : kRules) names.insert(rule.options.begin(), rule.options.end());
  return names;
}

}  // namespace loongforge::cmd
