// What a training run is told: the plain form of `loongforge train`'s options (cmd/train/options
// holds the table with names, help and environment). Defaults are those of the command.
// Thread-safety: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset_choices.h"
#include "optim/adamw.h"
#include "quant/loongamp.h"
#include "quant/recipe.h"

namespace loongforge::train {

enum class FinetuningType { kLora, kQlora, kFull };  // kQlora: kLora, of an NF4 model
enum class OverflowLogLevel { kDebug, kWarning, kError };
enum class Strategy { kNo, kSteps, kEpoch };  // of eval and save
enum class LogFormat { kText, kJson };

struct TrainOptions {
  std::string model_path;
  std::string dataset;  // paths, or names under LOONGFORGE_DATA, separated by commas
  std::optional<data::MixStrategy> mix_strategy;  // kConcat; with weights kInterleaveUnder
  std::vector<double> dataset_weights;            // one a dataset; empty: all equal
  double val_size = 0;  // held out of dataset: below 1 a share, else a count
  std::string output_dir;
  bool overwrite_output_dir = false;
  std::string adapter_path;  // continue from a PEFT adapter; eval_only: evaluate with it

  FinetuningType finetuning_type = FinetuningType::kLora;
  int64_t lora_rank = 8;
  double lora_alpha = 16;
  double lora_dropout = 0;
  std::string lora_target = "all";  // "all" or names separated by commas (q_proj,v_proj)
  bool use_rslora = false;
  std::vector<std::string>
      lora_given;  // of these flags those that are given: an adapter that is read must have them so

  std::optional<double> learning_rate;  // default 2e-4 (lora), 2e-5 (full)
  std::string lr_scheduler_type = "cosine";
  double warmup_ratio = 0.03;
  int64_t warmup_steps = 0;  // > 0 counts over warmup_ratio
  double weight_decay = 0;
  double adam_beta1 = 0.9, adam_beta2 = 0.999, adam_epsilon = 1e-8;
  double max_grad_norm = 1;
  int64_t per_device_train_batch_size = 1;
  int64_t per_device_eval_batch_size = 1;
  int64_t gradient_accumulation_steps = 8;
  int64_t global_batch_size = 0;  // rows; 0: per_device * accumulation
  int64_t reduce_lanes = 0;       // 0: 1 (full) or 8 (lora)
  double num_train_epochs = 1;
  int64_t max_steps = -1;  // > 0 counts over num_train_epochs
  uint64_t seed = 42;
  int64_t cutoff_len = 1024;
  bool packing = false;
  int64_t max_samples = 0;  // 0: all
  bool train_on_prompt = false;
  bool mask_history = false;  // only the last answer of a conversation is trained on
  data::TextChunks text_chunks = data::TextChunks::kRecord;
  bool streaming = false;         // samples are read as they are needed; needs max_steps
  int64_t buffer_size = 16384;    // streamed samples that are shuffled together
  std::string token_cache;        // folder of tokenised datasets; empty: none
  uint64_t token_cache_from = 0;  // bytes of the smallest file that is worth it
  std::string template_name;      // empty: the model's chat template, else "alpaca" (announced)
  bool gradient_checkpointing = false;

  quant::Recipe recipe;  // of all --fp8_ flags
  std::vector<quant::AmpRule> precision_overrides;
  std::vector<std::string> precision_notes;  // what the flags imply, told once at the start
  std::vector<std::string>
      without_effect;  // flags that are given and change nothing, a line each; told there too
  optim::MomentFormat moments = optim::MomentFormat::kF32;
  bool bf16_masters = false;  // --master bf16
  bool fp8_stats = false;
  bool show_precision = false;
  OverflowLogLevel fp8_overflow_log_level = OverflowLogLevel::kWarning;

  std::string eval_dataset;
  Strategy eval_strategy = Strategy::kNo;  // eval_dataset alone means kEpoch
  int64_t eval_steps = 0;
  bool eval_on_start = false;
  Strategy save_strategy = Strategy::kSteps;
  int64_t save_steps = 500;
  int64_t save_total_limit = 2;
  bool load_best_model_at_end =
      false;  // the run's final model is the best evaluated one; eval and save strategies are equal
  bool greater_is_better = false;  // of metric_for_best_model, which is eval_loss
  bool track_best = false;  // one of these two asks for it, or metric_for_best_model was named
  int64_t early_stopping_patience =
      0;  // evaluations without improvement that end the run; 0: none do
  double early_stopping_threshold = 0;
  std::string
      resume_from_checkpoint;  // "", "true" (the newest that verifies) or a checkpoint folder
  int64_t logging_steps = 1;
  bool report_to_jsonl = false;        // output_dir/metrics.jsonl
  bool report_to_tensorboard = false;  // output_dir/runs
  LogFormat log_format = LogFormat::kText;
  int64_t max_nonfinite_steps = 10;  // that many skipped steps in a row end the run

  bool dry_run = false;
  bool probe = false;  // dry_run: measure the first steps
  bool eval_only = false;
  bool json = false;
  int64_t preview = 0;         // samples to show; > 0 shows them and ends
  std::string sample_prompts;  // file: one prompt a line, or JSONL {"prompt"} / {"messages"}
  int64_t sample_max_new_tokens = 128;
  double sample_temperature = 0;  // 0: greedy
  double sample_top_p = 1;
  int64_t sample_top_k = 0;  // 0: all

  int threads = 0;                   // 0: one per core within affinity mask and quota
  std::string resolved_config_json;  // written to output_dir as it is
};

}  // namespace loongforge::train
