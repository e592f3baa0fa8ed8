// The table of `loongforge train` fills train::TrainOptions; its defaults are those that the struct
// states.
#include <doctest/doctest.h>

#include <array>
#include <fstream>
#include <random>
#include <sstream>

#include "cli/options_parse.h"
#include "cmd/commands.h"
#include "cmd/train/options.h"
#include "data/token_cache.h"
#include "support/expect_error.h"
#include "support/json.h"
#include "support/temp_dir.h"
#include "train/session.h"

namespace loongforge::cmd {
namespace {

train::TrainOptions filled(std::vector<const char*> words) {
  static const std::vector<cli::Option> table = cli::full_table(train_command);
  return train_options(
      cli::parse_options(table, words, [](const char*) -> const char* { return nullptr; }).options);
}

TEST_CASE("defaults of the table are those of the struct") {
  const train::TrainOptions got =
      filled({"--model_path", "m", "--dataset", "d", "--output_dir", "o"});
  const train::TrainOptions stated;
  CHECK(got.model_path == "m");
  CHECK(got.dataset == "d");
  CHECK(got.output_dir == "o");
  CHECK(got.finetuning_type == stated.finetuning_type);
  CHECK(got.lora_rank == stated.lora_rank);
  CHECK(got.lora_alpha == stated.lora_alpha);
  CHECK(got.lora_dropout == stated.lora_dropout);
  CHECK(got.lora_target == stated.lora_target);
  CHECK(got.use_rslora == stated.use_rslora);
  CHECK(got.learning_rate == stated.learning_rate);
  CHECK(got.lr_scheduler_type == stated.lr_scheduler_type);
  CHECK(got.warmup_ratio == stated.warmup_ratio);
  CHECK(got.warmup_steps == stated.warmup_steps);
  CHECK(got.weight_decay == stated.weight_decay);
  CHECK(got.adam_beta1 == stated.adam_beta1);
  CHECK(got.adam_beta2 == stated.adam_beta2);
  CHECK(got.adam_epsilon == stated.adam_epsilon);
  CHECK(got.max_grad_norm == stated.max_grad_norm);
  CHECK(got.per_device_train_batch_size == stated.per_device_train_batch_size);
  CHECK(got.per_device_eval_batch_size == stated.per_device_eval_batch_size);
  CHECK(got.gradient_accumulation_steps == stated.gradient_accumulation_steps);
  CHECK(got.global_batch_size == stated.global_batch_size);
  CHECK(got.reduce_lanes == stated.reduce_lanes);
  CHECK(got.num_train_epochs == stated.num_train_epochs);
  CHECK(got.max_steps == stated.max_steps);
  CHECK(got.seed == stated.seed);
  CHECK(got.cutoff_len == stated.cutoff_len);
  CHECK(got.packing == stated.packing);
  CHECK(got.max_samples == stated.max_samples);
  CHECK(got.train_on_prompt == stated.train_on_prompt);
  CHECK(got.mask_history == stated.mask_history);
  CHECK(got.text_chunks == stated.text_chunks);
  CHECK(got.mix_strategy == stated.mix_strategy);
  CHECK(got.dataset_weights == stated.dataset_weights);
  CHECK(got.val_size == stated.val_size);
  CHECK(got.streaming == stated.streaming);
  CHECK(got.buffer_size == stated.buffer_size);
  CHECK(got.template_name == stated.template_name);
  CHECK(got.gradient_checkpointing == stated.gradient_checkpointing);
  CHECK(got.recipe.flags() == stated.recipe.flags());
  CHECK(got.recipe.window == stated.recipe.window);
  CHECK(got.precision_overrides.empty());
  CHECK(got.precision_notes.empty());
  CHECK(got.without_effect.empty());
  CHECK(got.moments == stated.moments);
  CHECK(got.bf16_masters == stated.bf16_masters);
  CHECK(got.fp8_stats == stated.fp8_stats);
  CHECK(got.show_precision == stated.show_precision);
  CHECK(got.fp8_overflow_log_level == stated.fp8_overflow_log_level);
  CHECK(got.eval_strategy == stated.eval_strategy);
  CHECK(got.eval_steps == stated.eval_steps);
  CHECK(got.eval_on_start == stated.eval_on_start);
  CHECK(got.save_strategy == stated.save_strategy);
  CHECK(got.save_steps == stated.save_steps);
  CHECK(got.save_total_limit == stated.save_total_limit);
  CHECK(got.resume_from_checkpoint == stated.resume_from_checkpoint);
  CHECK(got.logging_steps == stated.logging_steps);
  CHECK(got.report_to_jsonl == stated.report_to_jsonl);
  CHECK(got.report_to_tensorboard == stated.report_to_tensorboard);
  CHECK(got.load_best_model_at_end == stated.load_best_model_at_end);
  CHECK(got.greater_is_better == stated.greater_is_better);
  CHECK(got.track_best == stated.track_best);
  CHECK(got.early_stopping_patience == stated.early_stopping_patience);
  CHECK(got.early_stopping_threshold == stated.early_stopping_threshold);
  CHECK(got.log_format == stated.log_format);
  CHECK(got.max_nonfinite_steps == stated.max_nonfinite_steps);
  CHECK(got.preview == stated.preview);
  CHECK(got.probe == stated.probe);
  CHECK(got.sample_max_new_tokens == stated.sample_max_new_tokens);
  CHECK(got.sample_temperature == stated.sample_temperature);
  CHECK(got.sample_top_p == stated.sample_top_p);
  CHECK(got.sample_top_k == stated.sample_top_k);
  CHECK(got.threads == stated.threads);
}

TEST_CASE("choices, aliases and flags reach their fields") {
  const train::TrainOptions got = filled({"--model_path",
                                          "m",
                                          "--dataset",
                                          "d",
                                          "--output_dir",
                                          "o",
                                          "--lr-scheduler",
                                          "linear",
                                          "--lora_r",
                                          "4",
                                          "--fp8-precision",
                                          "fp32",
                                          "--eval_dataset",
                                          "e",
                                          "--eval_steps",
                                          "7",
                                          "--save_strategy",
                                          "epoch",
                                          "--report_to",
                                          "jsonl",
                                          "--log-format",
                                          "json",
                                          "--rslora",
                                          "--packing",
                                          "--resume_from_checkpoint",
                                          "--global_batch_size",
                                          "6",
                                          "--micro_batch_size",
                                          "3",
                                          "--lora_target",
                                          "q_proj,v_proj",
                                          "--fp8_overflow_log_level",
                                          "error",
                                          "--threads",
                                          "2"});
  CHECK(got.lr_scheduler_type == "linear");
  CHECK(got.lora_rank == 4);
  CHECK(got.recipe.precision == quant::RunPrecision::kFp32);
  CHECK(got.eval_strategy == train::Strategy::kSteps);
  CHECK(got.eval_steps == 7);
  CHECK(got.eval_on_start);
  CHECK(got.save_strategy == train::Strategy::kEpoch);
  CHECK(got.report_to_jsonl);
  CHECK(got.log_format == train::LogFormat::kJson);
  CHECK(got.use_rslora);
  CHECK(got.packing);
  CHECK(got.resume_from_checkpoint == "true");
  CHECK(got.global_batch_size == 6);
  CHECK(got.per_device_train_batch_size == 3);
  CHECK(got.lora_target == "q_proj,v_proj");
  CHECK(got.fp8_overflow_log_level == train::OverflowLogLevel::kError);
  CHECK(got.threads == 2);
}

TEST_CASE(
    "eval_dataset alone evaluates every epoch and at the start; --no-eval_on_start leaves that "
    "out") {
  const std::vector<const char*> base = {"--model_path", "m", "--dataset",      "d",
                                         "--output_dir", "o", "--eval_dataset", "e"};
  const train::TrainOptions got = filled(base);
  CHECK(got.eval_strategy == train::Strategy::kEpoch);
  CHECK(got.eval_on_start);
  std::vector<const char*> without = base;
  without.push_back("--no-eval_on_start");
  CHECK_FALSE(filled(without).eval_on_start);
}

TEST_CASE(
    "eval_only, dry_run and preview need no output folder; eval_only runs on eval_dataset or "
    "prompts alone") {
  CHECK(filled({"--model_path", "m", "--dataset", "d", "--eval_only"}).eval_only);
  CHECK(filled({"--model_path", "m", "--dataset", "d", "--dry-run"}).dry_run);
  CHECK(filled({"--model_path", "m", "--dataset", "d", "--preview", "3"}).preview == 3);
  CHECK(filled({"--model_path", "m", "--eval_dataset", "e", "--eval_only"}).eval_dataset == "e");
  CHECK(filled({"--model_path", "m", "--sample_prompts", "p", "--eval_only"}).sample_prompts ==
        "p");
  LF_CHECK_ERROR(filled({"--model_path", "m", "--eval_only"}), ErrorCode::kUsage,
                 "--dataset is missing");
}

TEST_CASE("a resolved configuration is read again, whatever it was made with") {
  const test::TempDir folder;
  const auto again = [&](std::vector<const char*> words, std::vector<const char*> more) {
    for (const char* word : {"--model_path", "m", "--dataset", "d", "--output_dir", "o"})
      words.push_back(word);
    const std::string path = (folder / "run_config.json").string();
    std::ofstream(path) << filled(words).resolved_config_json;
    more.insert(more.begin(), {"--config", path.c_str()});
    return filled(more);
  };
  CHECK(again({"--finetuning_type", "full"}, {}).finetuning_type == train::FinetuningType::kFull);
  CHECK(again({"--save_strategy", "epoch"}, {}).save_strategy == train::Strategy::kEpoch);
  CHECK(again({"--global_batch_size", "5"}, {}).global_batch_size == 5);
  CHECK(again({"--eval_dataset", "e", "--eval_steps", "3"}, {}).eval_steps == 3);
  CHECK(again({"--lora_alpha", "16.50"}, {}).lora_alpha == 16.5);
  LF_CHECK_ERROR(again({"--lora_rank", "4"}, {"--finetuning_type", "full"}), ErrorCode::kUsage,
                 "lora_rank in ");
  // A flag resumes a run that was told to start anew.
  const train::TrainOptions resumed =
      again({"--overwrite_output_dir"}, {"--resume_from_checkpoint"});
  CHECK(resumed.resume_from_checkpoint == "true");
  CHECK_FALSE(resumed.overwrite_output_dir);
  const train::TrainOptions anew = again({"--resume_from_checkpoint"}, {"--overwrite_output_dir"});
  CHECK(anew.resume_from_checkpoint.empty());
  CHECK(anew.overwrite_output_dir);
}

TEST_CASE("tokenised datasets are kept unless --no-cache is said") {
  const std::vector<const char*> base = {"--model_path", "m", "--dataset", "d",
                                         "--output_dir", "o"};
  const auto with = [&](std::vector<const char*> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return filled(more);
  };
  CHECK(with({}).token_cache == data::default_token_cache());
  CHECK(with({}).token_cache_from == 1 << 20);
  CHECK(with({"--cache_dir", "c"}).token_cache == "c");
  CHECK(with({"--tokenized-path", "c"}).token_cache_from == 0);
  CHECK(with({"--no-cache"}).token_cache.empty());
  CHECK(with({"--no_cache"}).token_cache.empty());
  CHECK(with({"--streaming", "--buffer-size", "7"}).buffer_size == 7);
  LF_CHECK_ERROR(with({"--buffer_size", "7"}), ErrorCode::kUsage,
                 "--buffer_size needs --streaming");
  LF_CHECK_ERROR(with({"--no_cache", "--tokenized_path", "c"}), ErrorCode::kUsage,
                 "--tokenized_path contradicts --no-cache");
}

TEST_CASE("choices about data reach their fields, and are read again") {
  const train::TrainOptions got =
      filled({"--model_path", "m", "--dataset", "a,b", "--output_dir", "o", "--mask_history",
              "--text-chunks", "packed", "--interleave_probs", "0.7,3e-1", "--mix_strategy",
              "interleave_over", "--val_size", "0.1"});
  CHECK(got.mask_history);
  CHECK(got.text_chunks == data::TextChunks::kPacked);
  CHECK(got.dataset_weights == std::vector<double>{0.7, 0.3});
  CHECK(got.mix_strategy == data::MixStrategy::kInterleaveOver);
  CHECK(got.val_size == 0.1);
  CHECK(got.eval_strategy == train::Strategy::kEpoch);
  const test::TempDir folder;
  const std::string path = (folder / "run_config.json").string();
  std::ofstream(path) << got.resolved_config_json;
  const train::TrainOptions again = filled({"--config", path.c_str()});
  CHECK(again.text_chunks == got.text_chunks);
  CHECK(again.dataset_weights == got.dataset_weights);
  CHECK(
      filled({"--model_path", "m", "--dataset", "d", "--output_dir", "o", "--text_chunks", "line"})
          .text_chunks == data::TextChunks::kLine);
  LF_CHECK_ERROR(filled({"--model_path", "m", "--dataset", "a,b", "--output_dir", "o",
                         "--dataset_weights", "1,much"}),
                 ErrorCode::kUsage, "--dataset_weights: \"much\" is no number");
}

train::TrainOptions run_with(std::vector<const char*> more) {
  std::vector<const char*> words = {"--model_path", "m", "--dataset", "d", "--output_dir", "o"};
  words.insert(words.end(), more.begin(), more.end());
  return filled(words);
}

TEST_CASE("precision flags make one recipe; what they imply is noted") {
  using quant::ScaleRecipe;
  const train::TrainOptions plain =
      run_with({"--fp8_precision", "hybrid", "--fp8_activations", "compute", "--fp8_recipe",
                "tensor-current", "--fp8_scale_override", "*.down_proj=1.5,*.0.*=2",
                "--precision-override", "*.q_proj=bf16", "--fp8_stats", "--moments", "fp8",
                "--master", "bf16", "--finetuning_type", "full"});
  CHECK(plain.moments == optim::MomentFormat::kFp8);
  CHECK(plain.bf16_masters);
  CHECK(plain.recipe.flags() ==
        "--fp8_precision hybrid --fp8_activations compute --fp8_recipe tensor-current "
        "--fp8_scale_override *.down_proj=1.5 --fp8_scale_override *.0.*=2");
  REQUIRE(plain.precision_overrides.size() == 1);
  CHECK(plain.precision_overrides[0].reason == "--precision_override *.q_proj=bf16");
  CHECK(plain.precision_notes.empty());
  CHECK(plain.fp8_stats);

  const train::TrainOptions window = run_with({"--fp8_dynamic_scale_window", "64"});
  CHECK(window.recipe.scales == ScaleRecipe::kDelayed);
  CHECK(window.recipe.window == 64);
  REQUIRE(window.precision_notes.size() == 1);
  CHECK(window.precision_notes[0] == "--fp8_dynamic_scale_window selects --fp8_recipe delayed");
  // What was resolved is read again as the same.
  const test::TempDir folder;
  const std::string path = (folder / "run_config.json").string();
  std::ofstream(path) << window.resolved_config_json;
  CHECK(filled({"--config", path.c_str()}).recipe.flags() == window.recipe.flags());

  const train::TrainOptions bias =
      run_with({"--fp8_adaptive_bias", "true", "--fp8_activations", "compute"});
  CHECK(bias.recipe.scales == ScaleRecipe::kDelayed);
  CHECK(bias.recipe.window == 128);
  CHECK(bias.recipe.adaptive_bias);
  CHECK(bias.precision_notes.size() == 1);
  CHECK(run_with({"--fp8_recipe", "delayed", "--fp8_dynamic_scale_window", "8"})
            .precision_notes.empty());
}

TEST_CASE("precision flags that contradict are refused") {
  LF_CHECK_ERROR(run_with({"--fp8_recipe", "tensor-current", "--fp8_dynamic_scale_window", "64"}),
                 ErrorCode::kUsage,
                 "--fp8_dynamic_scale_window contradicts --fp8_recipe tensor-current");
  LF_CHECK_ERROR(run_with({"--fp8_recipe", "block", "--fp8_adaptive_bias"}), ErrorCode::kUsage,
                 "--fp8_adaptive_bias contradicts --fp8_recipe block");
  LF_CHECK_ERROR(run_with({"--fp8_precision", "bf16", "--fp8_activations", "compute"}),
                 ErrorCode::kUsage, "--fp8_activations needs an FP8 precision");
  LF_CHECK_ERROR(run_with({"--fp8_precision", "fp32", "--fp8_adaptive_bias"}), ErrorCode::kUsage,
                 "needs an FP8 precision");
  for (const char* flag : {"--fp8_scale_factor=2", "--fp8_stats=true", "--fp8_scale_override=*=2"})
    LF_CHECK_ERROR(run_with({"--fp8_precision", "fp32", flag}), ErrorCode::kUsage,
                   "needs an FP8 precision");
  LF_CHECK_ERROR(run_with({"--master", "bf16"}), ErrorCode::kUsage,
                 "--master bf16 needs --finetuning_type full");
  LF_CHECK_ERROR(
      run_with({"--master", "bf16", "--finetuning_type", "full", "--fp8_precision", "fp32"}),
      ErrorCode::kUsage, "--master bf16 contradicts --fp8_precision fp32");
  CHECK_NOTHROW(run_with({"--fp8_precision", "bf16", "--fp8_activations", "compute",
                          "--precision_override", "*.down_proj=fp8"}));
  LF_CHECK_ERROR(run_with({"--show_precision"}), ErrorCode::kUsage, "needs --dry_run");
  LF_CHECK_ERROR(run_with({"--precision_override", "*.q_proj=int4"}), ErrorCode::kUsage,
                 "int4 is no precision");
  LF_CHECK_ERROR(run_with({"--fp8_scale_override", "*.q_proj"}), ErrorCode::kUsage,
                 "is not PATTERN=VALUE");
}

TEST_CASE("the resolved configuration holds every value by its canonical name") {
  const train::TrainOptions got =
      filled({"--model_path", "m", "--dataset", "d", "--output_dir", "o", "--lora_r", "4"});
  const support::Json json = support::Json::parse(got.resolved_config_json, "resolved");
  CHECK(json.at("lora_rank") == support::Json(4));
  CHECK(json.at("seed") == support::Json(42));
  CHECK_FALSE(json.contains("config"));
}

TEST_CASE("the best model: what its options ask of each other") {
  const auto with = [](std::vector<const char*> more) {
    more.insert(more.begin(), {"--model_path", "m", "--dataset", "d", "--output_dir", "o"});
    return filled(more);
  };
  train::TrainOptions o = with({"--eval_dataset", "e", "--load_best_model_at_end"});
  CHECK(o.load_best_model_at_end);
  CHECK(o.track_best);
  CHECK_FALSE(o.greater_is_better);
  CHECK(o.save_strategy == train::Strategy::kEpoch);  // follows the evaluations
  o = with({"--eval_dataset", "e", "--eval_steps", "30", "--load_best_model_at_end"});
  CHECK(o.save_strategy == train::Strategy::kSteps);
  CHECK(o.save_steps == 30);
  o = with({"--eval_dataset", "e", "--eval_steps", "30", "--save_steps", "60",
            "--load_best_model_at_end", "--greater_is_better"});
  CHECK(o.save_steps == 60);
  CHECK(o.greater_is_better);
  o = with({"--eval_dataset", "e", "--early_stopping_patience", "3", "--early_stopping_threshold",
            "0.01"});
  CHECK(o.early_stopping_patience == 3);
  CHECK(o.early_stopping_threshold == 0.01);
  CHECK(o.track_best);
  CHECK(with({"--eval_dataset", "e", "--metric_for_best_model", "loss"}).track_best);
  CHECK_FALSE(with({"--eval_dataset", "e"}).track_best);
  LF_CHECK_ERROR(with({"--eval_dataset", "e", "--eval_steps", "30", "--save_steps", "40",
                       "--load_best_model_at_end"}),
                 ErrorCode::kUsage, "multiple of --eval_steps");
  LF_CHECK_ERROR(with({"--eval_dataset", "e", "--save_steps", "40", "--load_best_model_at_end"}),
                 ErrorCode::kUsage, "--save_strategy to be --eval_strategy");
  LF_CHECK_ERROR(with({"--load_best_model_at_end"}), ErrorCode::kUsage, "need evaluations");
  LF_CHECK_ERROR(with({"--early_stopping_patience", "2"}), ErrorCode::kUsage, "need evaluations");
  LF_CHECK_ERROR(with({"--early_stopping_threshold", "2"}), ErrorCode::kUsage,
                 "needs --early_stopping_patience");
}

// A value of each kind at the edge of what its row allows.
std::string edge_value(const cli::Option& option, std::minstd_rand& random) {
  const std::string domain = option.domain != nullptr ? option.domain : "";
  switch (option.type) {
    case cli::OptionType::kFlag:
    case cli::OptionType::kFlagOrPath:
      return "true";
    case cli::OptionType::kChoice:
    case cli::OptionType::kFlagOrChoice: {
      std::vector<std::string> words;
      std::stringstream parts(domain);
      for (std::string word; std::getline(parts, word, '|');) words.push_back(word);
      return words[random() % words.size()];
    }
    case cli::OptionType::kInt:
      return std::array{"1", "2", "7", "65536", "9223372036854775807"}[random() % 5];
    case cli::OptionType::kDouble:
      return std::array{"0", "0.5", "1", "1e30"}[random() % 4];
    default:
      return std::array{"a", "a,b", "*.q_proj=1", "*=bf16", "0.5,0.5"}[random() % 5];
  }
}

// Options that divide by, or lean on, one another: what does not go together is an Error that says
// so, never a crash.
TEST_CASE("no combination of options ends in anything but options or one Error") {
  const std::vector<cli::Option> table = cli::full_table(train_command);
  std::minstd_rand random(4);
  int filled_in = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> words = {"--model_path", "m", "--dataset", "d", "--output_dir", "o"};
    // Half of them about evaluations and checkpoints, which depend on each other most.
    if (round % 2 == 0) words.insert(words.end(), {"--val_size", "0.1"});
    if (round % 4 == 0) words.emplace_back("--load_best_model_at_end");
    for (uint32_t n = 2 + random() % 4; n > 0; --n) {
      const cli::Option& option = table[random() % table.size()];
      const std::string name = cli::canonical_name(option);
      if (name == "config" || name == "help" || name == "version") continue;
      words.push_back("--" + name + "=" + edge_value(option, random));
    }
    std::vector<const char*> plain;
    std::string shown;
    for (const std::string& word : words) {
      plain.push_back(word.c_str());
      shown += word + " ";
    }
    CAPTURE(shown);
    try {
      train::check_options(filled(plain));
      ++filled_in;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kUsage);
      CHECK(std::string(error.what()).size() > 10);
      ++refused;
    }
  }
  CHECK(filled_in > 200);
  CHECK(refused > 200);
}

TEST_CASE("sampling needs a temperature") {
  const auto with = [](std::vector<const char*> more) {
    more.insert(more.begin(),
                {"--model_path", "m", "--dataset", "d", "--eval_only", "--sample_prompts", "p"});
    return filled(more);
  };
  const train::TrainOptions o =
      with({"--sample_temperature", "0.7", "--sample_top_p", "0.9", "--sample_top_k", "40"});
  CHECK(o.sample_temperature == 0.7);
  CHECK(o.sample_top_p == 0.9);
  CHECK(o.sample_top_k == 40);
  LF_CHECK_ERROR(with({"--sample_top_p", "0.9"}), ErrorCode::kUsage,
                 "needs a --sample_temperature");
  LF_CHECK_ERROR(with({"--sample_temperature", "1", "--sample_top_p", "0"}), ErrorCode::kUsage,
                 "sample_top_p");
}

TEST_CASE("reports go to several places, unknown ones are named") {
  const auto to = [](const char* places) {
    return filled(
        {"--model_path", "m", "--dataset", "d", "--output_dir", "o", "--report_to", places});
  };
  CHECK(to("jsonl,tensorboard").report_to_jsonl);
  CHECK(to("jsonl,tensorboard").report_to_tensorboard);
  CHECK_FALSE(to("tensorboard").report_to_jsonl);
  CHECK_FALSE(to("none").report_to_tensorboard);
  LF_CHECK_ERROR(to("wandb"), ErrorCode::kUsage, "wandb");
  LF_CHECK_ERROR(to("none,jsonl"), ErrorCode::kUsage, "contradicts");
}

}  // namespace
}  // namespace loongforge::cmd
