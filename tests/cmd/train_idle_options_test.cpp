// Options that are given and change nothing are told in one line, by one table; every option is
// either in it or named here as one that always counts.
#include <doctest/doctest.h>

#include "cli/options_parse.h"
#include "cmd/commands.h"
#include "cmd/train/idle_options.h"
#include "cmd/train/options.h"

namespace loongforge::cmd {
namespace {

std::vector<std::string> lines_of(std::vector<const char*> more, bool training = true) {
  std::vector<const char*> words = {"--model_path", "m", "--dataset", "d"};
  if (training) words.insert(words.end(), {"--output_dir", "o"});
  words.insert(words.end(), more.begin(), more.end());
  static const std::vector<cli::Option> table = cli::full_table(train_command);
  return train_options(
             cli::parse_options(table, words, [](const char*) -> const char* { return nullptr; })
                 .options)
      .without_effect;
}

void check_line(const std::vector<const char*>& more, const std::string& line,
                bool training = true) {
  const std::vector<std::string> lines = lines_of(more, training);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] == line);
}

TEST_CASE("every option that is given and does nothing is told, and why") {
  check_line({"--greater_is_better"},
             "--greater_is_better has no effect: nothing asks for the best model");
  check_line({"--warmup_ratio", "0.1", "--warmup_steps", "3"},
             "--warmup_ratio has no effect: --warmup_steps counts over it");
  check_line({"--warmup_steps", "3", "--lr_scheduler_type", "constant"},
             "--warmup_steps has no effect: --lr_scheduler_type constant has none");
  check_line({"--max_steps", "3", "--num_train_epochs", "2"},
             "--num_train_epochs has no effect: --max_steps counts over it");
  check_line({"--mix_strategy", "concat"}, "--mix_strategy has no effect: there is one dataset");
  check_line({"--sample_temperature", "1", "--sample_top_k", "5"},
             "--sample_temperature, --sample_top_k have no effect: there are no --sample_prompts");
  check_line({"--eval_on_start"}, "--eval_on_start has no effect: the run does not evaluate");
  check_line({"--per_device_eval_batch_size", "4"},
             "--per_device_eval_batch_size has no effect: the run does not evaluate");
  check_line({"--fp8_precision", "bf16", "--fp8_overflow_log_level", "error"},
             "--fp8_overflow_log_level has no effect: nothing is rounded to FP8");
  check_line({"--eval_dataset", "e", "--eval_strategy", "no"},
             "--eval_dataset has no effect: the run does not evaluate");
  check_line({"--fp8_recipe", "delayed", "--fp8_activations", "off"},
             "--fp8_recipe has no effect: delayed scales activations, which --fp8_activations off "
             "leaves in bf16: weights are scaled by their present values");
  check_line({"--fp8_adaptive_bias"},
             "--fp8_adaptive_bias has no effect: it fits the scales of gradients, which only "
             "--fp8_activations compute rounds");
  check_line({"--fp8_precision", "hybrid"},
             "--fp8_precision has no effect: hybrid rounds gradients to E5M2, which only "
             "--fp8_activations compute rounds: this run equals e4m3");
  check_line({"--dry_run", "--show_precision", "--probe"},
             "--probe has no effect: --show_precision prints its table and stops");
}

TEST_CASE("evaluating and previewing take the options of a run, and tell what is asked of them") {
  check_line({"--eval_only", "--lora_rank", "4"},
             "--lora_rank has no effect: an evaluation makes no adapter", false);
  check_line({"--eval_only", "--eval_dataset", "e"},
             "--dataset has no effect: --eval_dataset is what is evaluated", false);
  CHECK(lines_of({"--preview", "3", "--learning_rate", "1e-3", "--max_steps", "3",
                  "--num_train_epochs", "2"})
            .empty());
}

TEST_CASE("a limit of checkpoints means nothing to a run that writes one") {
  check_line({"--save_strategy", "no", "--save_total_limit", "3"},
             "--save_total_limit has no effect: --save_strategy no writes one checkpoint");
  CHECK(lines_of({"--save_strategy", "no", "--save_total_limit", "3", "--resume_from_checkpoint"})
            .empty());
}

TEST_CASE("what has an effect is not told") {
  CHECK(lines_of({}).empty());
  CHECK(
      lines_of({"--warmup_ratio", "0.1", "--num_train_epochs", "2", "--eval_dataset", "e",
                "--per_device_eval_batch_size", "4", "--greater_is_better",
                "--metric_for_best_model", "loss", "--sample_prompts", "p", "--sample_temperature",
                "1", "--fp8_adaptive_bias", "--fp8_activations", "compute"})
          .empty());
}

TEST_CASE("every option has a rule or always counts") {
  // Those that are refused where they contradict, and those that count whatever stands beside them.
  const std::set<std::string> always = {"model_path",
                                        "val_size",
                                        "output_dir",
                                        "overwrite_output_dir",
                                        "adapter",
                                        "template",
                                        "cutoff_len",
                                        "packing",
                                        "max_samples",
                                        "train_on_prompt",
                                        "mask_history",
                                        "text_chunks",
                                        "buffer_size",
                                        "cache",
                                        "preview",
                                        "finetuning_type",
                                        "learning_rate",
                                        "lr_scheduler_type",
                                        "max_steps",
                                        "per_device_train_batch_size",
                                        "gradient_accumulation_steps",
                                        "global_batch_size",
                                        "reduce_lanes",
                                        "weight_decay",
                                        "adam_beta1",
                                        "adam_beta2",
                                        "adam_epsilon",
                                        "max_grad_norm",
                                        "max_nonfinite_steps",
                                        "seed",
                                        "fp8_activations",
                                        "fp8_scale_factor",
                                        "fp8_scale_override",
                                        "precision_override",
                                        "moments",
                                        "master",
                                        "gradient_checkpointing",
                                        "show_precision",
                                        "dry_run",
                                        "eval_strategy",
                                        "eval_steps",
                                        "eval_only",
                                        "sample_prompts",
                                        "save_strategy",
                                        "save_steps",
                                        "load_best_model_at_end",
                                        "metric_for_best_model",
                                        "early_stopping_patience",
                                        "early_stopping_threshold",
                                        "resume_from_checkpoint",
                                        "logging_steps",
                                        "report_to",
                                        "json"};
  const std::set<std::string> ruled = options_with_effect_rules();
  for (const cli::Option& option : train_command.options) {
    const std::string name = cli::canonical_name(option);
    CAPTURE(name);
    CHECK((always.contains(name) || ruled.contains(name)));
  }
  for (const std::string& name : ruled) {
    CAPTURE(name);
    CHECK(cli::find_option(train_command.options, name) != nullptr);
  }
}

}  // namespace
}  // namespace loongforge::cmd
