#include "cmd/train/options.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string>

#include "base/error.h"
#include "cmd/commands.h"
#include "cmd/train/foreign_names.h"
#include "cmd/train/idle_options.h"
#include "cmd/train/precision_options.h"
#include "data/token_cache.h"

namespace loongforge::cmd {
namespace {

using cli::OptionType;

constexpr const char* kData = "Model and data";
constexpr const char* kTuning = "What is trained";
constexpr const char* kOptim = "Optimisation";
constexpr const char* kPrecision = "Precision and memory";
constexpr const char* kEval = "Evaluation and samples";
constexpr const char* kSave = "Checkpoints";
constexpr const char* kReport = "Reports";

constexpr uint64_t kWorthCaching = uint64_t{1} << 20;

constexpr cli::Option kTable[] = {
    {"model_path", OptionType::kPath, nullptr, "FOLDER", kData,
     "the LoongIR model (made by loongforge convert)"},
    {"dataset", OptionType::kString, nullptr, "PATH|NAME", kData,
     "alpaca, messages, sharegpt or text, several with commas; or names under LOONGFORGE_DATA"},
    {"mix_strategy", OptionType::kChoice, nullptr, "concat|interleave_under|interleave_over", kData,
     "how several datasets become one (default: concat; with weights interleave_under)"},
    {"dataset_weights|interleave_probs", OptionType::kList, nullptr, "NUMBERS", kData,
     "how often a sample is drawn from each dataset, as 0.7,0.3"},
    {"val_size", OptionType::kDouble, nullptr, "(0,inf)", kData,
     "hold samples of the dataset out to evaluate on: below 1 a share, else a count"},
    {"output_dir", OptionType::kPath, nullptr, "FOLDER", kData,
     "where checkpoints, configuration and metrics go"},
    {"overwrite_output_dir", OptionType::kFlag, "false", nullptr, kData,
     "start anew in an output_dir that holds a run"},
    {"adapter|adapter_path", OptionType::kPath, nullptr, "PATH", kData,
     "continue from a PEFT adapter or a checkpoint that holds one; with eval_only: evaluate with "
     "it"},
    {"template", OptionType::kString, nullptr, "NAME", kData,
     "prompt template (default: the model's chat template, else alpaca)"},
    {"cutoff_len|sequence_len", OptionType::kInt, "1024", "[2,1048576]", kData,
     "longest sample in tokens; longer ones lose the start of their prompt"},
    {"packing|sample_packing", OptionType::kFlag, "false", nullptr, kData,
     "put several samples into one row of cutoff_len"},
    {"max_samples", OptionType::kInt, nullptr, "[1,inf)", kData,
     "use the first N samples only (default: all)"},
    {"train_on_prompt|train_on_inputs", OptionType::kFlag, "false", nullptr, kData,
     "learn the prompt as well as the answer"},
    {"mask_history", OptionType::kFlag, "false", nullptr, kData,
     "learn the last answer of a conversation only"},
    {"text_chunks", OptionType::kChoice, nullptr, "paragraph|line|packed", kData,
     "what of a text is a sample (default: a record, of a .txt a paragraph)"},
    {"streaming", OptionType::kFlag, "false", nullptr, kData,
     "read samples as they are needed, for datasets larger than memory; needs max_steps"},
    {"buffer_size", OptionType::kInt, "16384", "[1,1073741824]", kData,
     "streamed samples that are read and shuffled together"},
    {"cache", OptionType::kFlag, "true", nullptr, kData,
     "keep tokenised datasets for the next start; --no-cache: do not"},
    {"tokenized_path|cache_dir", OptionType::kPath, nullptr, "FOLDER", kData,
     "where (default: ~/.cache/loongforge/tokens, for files of 1 MB and more)"},
    {"preview", OptionType::kInt, nullptr, "[1,1000]", kData,
     "show N samples, the tokens that are learnt marked, and stop"},

    {"finetuning_type", OptionType::kChoice, "lora", "lora|qlora|full", kTuning,
     "train a low-rank adapter (qlora: on an NF4 model), or every weight"},
    {"lora_rank|lora_r", OptionType::kInt, "8", "[1,1024]", kTuning, "rank of the adapter"},
    {"lora_alpha", OptionType::kDouble, "16", "(0,inf)", kTuning,
     "the adapter is scaled by alpha / rank"},
    {"lora_dropout", OptionType::kDouble, "0", "[0,1)", kTuning, "dropout before the adapter"},
    {"lora_target", OptionType::kList, "all", "all|NAMES", kTuning,
     "linears that take an adapter, as q_proj,v_proj"},
    {"use_rslora|rslora", OptionType::kFlag, "false", nullptr, kTuning,
     "scale by alpha / sqrt(rank)"},

    {"learning_rate", OptionType::kDouble, nullptr, "(0,inf)", kOptim,
     "peak learning rate (default: 2e-4; full: 2e-5)"},
    {"lr_scheduler_type|lr_scheduler", OptionType::kChoice, "cosine",
     "cosine|linear|constant|constant_with_warmup", kOptim, "how the learning rate runs"},
    {"warmup_ratio", OptionType::kDouble, "0.03", "[0,1]", kOptim,
     "part of the steps that warms up"},
    {"warmup_steps", OptionType::kInt, "0", "[0,inf)", kOptim,
     "steps that warm up; counts over warmup_ratio"},
    {"num_train_epochs|num_epochs", OptionType::kDouble, "1", "(0,inf)", kOptim,
     "passes over the dataset"},
    {"max_steps", OptionType::kInt, "-1", "[-1,inf)", kOptim,
     "stop after N steps; counts over num_train_epochs"},
    {"per_device_train_batch_size|micro_batch_size", OptionType::kInt, "1", "[1,65536]", kOptim,
     "rows of a micro-batch"},
    {"gradient_accumulation_steps", OptionType::kInt, "8", "[1,65536]", kOptim,
     "micro-batches of a step"},
    {"global_batch_size", OptionType::kInt, nullptr, "[1,inf)", kOptim,
     "rows of a step, whatever the number of ranks (default: batch x accumulation)"},
    {"reduce_lanes", OptionType::kInt, nullptr, "[1,1024]", kOptim,
     "lanes that gradients are summed in, a power of two (default: 8; full: 1)"},
    {"weight_decay", OptionType::kDouble, "0", "[0,inf)", kOptim, "decoupled weight decay"},
    {"adam_beta1", OptionType::kDouble, "0.9", "[0,1)", kOptim, "decay of the first moment"},
    {"adam_beta2", OptionType::kDouble, "0.999", "[0,1)", kOptim, "decay of the second moment"},
    {"adam_epsilon", OptionType::kDouble, "1e-8", "(0,inf)", kOptim,
     "added to the root of the second moment"},
    {"max_grad_norm", OptionType::kDouble, "1", "[0,inf)", kOptim,
     "clip the gradient to this norm; 0: never"},
    {"max_nonfinite_steps", OptionType::kInt, "10", "[1,inf)", kOptim,
     "give up after N skipped steps in a row"},
    {"seed", OptionType::kInt, "42", "[0,inf)", kOptim,
     "seed of shuffling, initialisation and dropout"},

    {"fp8_precision", OptionType::kChoice, "e4m3", "e4m3|e5m2|hybrid|bf16|fp32", kPrecision,
     "precision of the linear layers; hybrid: E4M3, gradients E5M2"},
    {"fp8_activations", OptionType::kChoice, "saved", "saved|compute|off", kPrecision,
     "FP8 for what is saved; for inputs and gradients before use as well; for neither"},
    {"fp8_recipe", OptionType::kChoice, "block", "block|tensor-current|delayed", kPrecision,
     "scales: a block's own, a tensor's own, or by the steps before"},
    {"fp8_dynamic_scale_window", OptionType::kInt, nullptr, "[1,65536]", kPrecision,
     "delayed: steps that a scale looks back (default: 128); selects delayed"},
    {"fp8_adaptive_bias", OptionType::kFlag, "false", nullptr, kPrecision,
     "delayed: fit the scales of gradients to their histogram; selects delayed"},
    {"fp8_scale_factor", OptionType::kDouble, "1", "(0,inf)", kPrecision,
     "multiplies the largest value before a scale is chosen"},
    {"fp8_scale_override", OptionType::kList, nullptr, "PATTERN=X,...", kPrecision,
     "another factor for layers that match, as *.down_proj=1.5"},
    {"precision_override", OptionType::kList, nullptr, "PATTERN=fp8|bf16|fp32,...", kPrecision,
     "another precision for layers that match, as *.down_proj=bf16"},
    {"moments", OptionType::kChoice, "fp32", "fp32|bf16|fp8", kPrecision,
     "how the optimizer keeps its moments"},
    {"master", OptionType::kChoice, "fp32", "fp32|bf16", kPrecision,
     "how full fine-tuning keeps the weights that it updates; bf16 is rounded stochastically"},
    {"fp8_stats", OptionType::kFlag, "false", nullptr, kPrecision,
     "measure what rounding to FP8 costs each tensor, and print it at the end"},
    {"fp8_overflow_log_level", OptionType::kChoice, "warning", "debug|warning|error", kPrecision,
     "level of the messages about FP8 overflow"},
    {"gradient_checkpointing", OptionType::kFlag, "false", nullptr, kPrecision,
     "keep block inputs only and compute the rest again: less memory, more time"},
    {"show_precision", OptionType::kFlag, "false", nullptr, kPrecision,
     "with dry_run: print each tensor's precision and why"},
    {"dry_run", OptionType::kFlag, "false", nullptr, kPrecision,
     "predict memory and steps; write nothing"},
    {"probe", OptionType::kFlag, "false", nullptr, kPrecision,
     "with dry_run: take the first steps for ten seconds and tell their speed"},

    {"eval_dataset", OptionType::kString, nullptr, "PATH|NAME", kEval, "dataset to evaluate on"},
    {"eval_strategy", OptionType::kChoice, nullptr, "no|steps|epoch", kEval,
     "when to evaluate (default: steps with eval_steps, epoch with eval_dataset alone)"},
    {"eval_steps", OptionType::kInt, nullptr, "[1,inf)", kEval, "evaluate every N steps"},
    {"eval_on_start", OptionType::kFlag, "true", nullptr, kEval,
     "evaluate before the first step as well"},
    {"per_device_eval_batch_size", OptionType::kInt, "1", "[1,65536]", kEval,
     "rows of an evaluation batch"},
    {"eval_only", OptionType::kFlag, "false", nullptr, kEval,
     "print loss and perplexity of a dataset and stop"},
    {"sample_prompts", OptionType::kPath, nullptr, "FILE", kEval,
     "prompts to answer at each evaluation: one a line, or JSONL with prompt or messages"},
    {"sample_max_new_tokens", OptionType::kInt, "128", "[1,1048576]", kEval,
     "longest answer in tokens"},
    {"sample_temperature", OptionType::kDouble, "0", "[0,inf)", kEval,
     "draw answers instead of taking the likeliest token; 0: greedy"},
    {"sample_top_p", OptionType::kDouble, "1", "(0,1]", kEval,
     "draw from the likeliest tokens that together have this probability"},
    {"sample_top_k", OptionType::kInt, "0", "[0,inf)", kEval,
     "draw from the K likeliest tokens; 0: all"},

    {"save_strategy", OptionType::kChoice, "steps", "no|steps|epoch", kSave,
     "when to write a checkpoint besides the end"},
    {"save_steps", OptionType::kInt, "500", "[1,inf)", kSave, "write one every N steps"},
    {"save_total_limit", OptionType::kInt, "2", "[0,inf)", kSave,
     "checkpoints that are kept, at least 2, and the best one; 0: all"},
    {"load_best_model_at_end", OptionType::kFlag, "false", nullptr, kSave,
     "the run's final model is the one of the best evaluation"},
    {"metric_for_best_model", OptionType::kChoice, nullptr, "eval_loss|loss", kSave,
     "what the best evaluation is judged by"},
    {"greater_is_better", OptionType::kFlag, "false", nullptr, kSave,
     "the best evaluation is the one of the largest metric"},
    {"early_stopping_patience", OptionType::kInt, nullptr, "[1,inf)", kSave,
     "end the run after N evaluations in a row without improvement"},
    {"early_stopping_threshold", OptionType::kDouble, "0", "[0,inf)", kSave,
     "an improvement is more than this"},
    {"resume_from_checkpoint", OptionType::kFlagOrPath, "false", nullptr, kSave,
     "go on from the newest checkpoint of output_dir, or from the one named"},

    {"logging_steps", OptionType::kInt, "1", "[1,inf)", kReport, "report every N steps"},
    {"report_to", OptionType::kList, "none", "none|jsonl|tensorboard", kReport,
     "jsonl: output_dir/metrics.jsonl; tensorboard: event files in output_dir/runs"},
    {"json", OptionType::kFlag, "false", nullptr, kReport, "print results as one JSON object"},
};

// The position of an option's value in its domain's order of words, as an enum of the same order.
template <class Enum>
Enum choice(const cli::Options& options, const char* name,
            std::initializer_list<const char*> words) {
  int index = 0;
  for (const char* word : words) {
    if (options.text(name) == word) return static_cast<Enum>(index);
    ++index;
  }
  throw_failed("option table", std::string("--") + name + " has a choice without a meaning",
               "please report it");
}

train::Strategy strategy(const cli::Options& options, const char* name) {
  return choice<train::Strategy>(options, name, {"no", "steps", "epoch"});
}

void fill_tuning(const cli::Options& options, train::TrainOptions* result) {
  result->finetuning_type =
      choice<train::FinetuningType>(options, "finetuning_type", {"lora", "qlora", "full"});
  result->lora_rank = options.integer("lora_rank");
  result->lora_alpha = options.number("lora_alpha");
  result->lora_dropout = options.number("lora_dropout");
  result->lora_target = options.text("lora_target");
  result->use_rslora = options.flag("use_rslora");
  for (const char* name : {"lora_rank", "lora_alpha", "lora_target", "use_rslora"})
    if (options.given(name)) result->lora_given.emplace_back(name);
  if (result->finetuning_type == train::FinetuningType::kFull)
    options.refuse_given(
        {"lora_rank", "lora_alpha", "lora_dropout", "lora_target", "use_rslora", "adapter"},
        "contradicts --finetuning_type full", "use --finetuning_type lora, or leave it out");
}

void fill_optimisation(const cli::Options& options, train::TrainOptions* result) {
  if (options.has("learning_rate")) result->learning_rate = options.number("learning_rate");
  result->lr_scheduler_type = options.text("lr_scheduler_type");
  result->warmup_ratio = options.number("warmup_ratio");
  result->warmup_steps = options.integer("warmup_steps");
  result->num_train_epochs = options.number("num_train_epochs");
  result->max_steps = options.integer("max_steps");
  result->per_device_train_batch_size = options.integer("per_device_train_batch_size");
  result->gradient_accumulation_steps = options.integer("gradient_accumulation_steps");
  if (options.has("global_batch_size"))
    result->global_batch_size = options.integer("global_batch_size");
  if (options.has("reduce_lanes")) result->reduce_lanes = options.integer("reduce_lanes");
  result->weight_decay = options.number("weight_decay");
  result->adam_beta1 = options.number("adam_beta1");
  result->adam_beta2 = options.number("adam_beta2");
  result->adam_epsilon = options.number("adam_epsilon");
  result->max_grad_norm = options.number("max_grad_norm");
  result->max_nonfinite_steps = options.integer("max_nonfinite_steps");
  result->seed = static_cast<uint64_t>(options.integer("seed"));
  if (result->max_steps == 0)
    throw_usage(options.place("max_steps") + ": 0 steps train nothing",
                "give N > 0, or -1 for no limit");
  if (result->global_batch_size > 0 && options.given("gradient_accumulation_steps") &&
      result->global_batch_size !=
          result->per_device_train_batch_size * result->gradient_accumulation_steps)
    throw_usage("--global_batch_size contradicts --gradient_accumulation_steps",
                "leave one of them out");
}

void fill_evaluation(const cli::Options& options, train::TrainOptions* result) {
  result->eval_dataset = options.text("eval_dataset");
  if (options.has("eval_steps")) result->eval_steps = options.integer("eval_steps");
  if (options.has("eval_strategy"))
    result->eval_strategy = strategy(options, "eval_strategy");
  else if (result->eval_steps > 0)
    result->eval_strategy = train::Strategy::kSteps;
  else if (!result->eval_dataset.empty() || result->val_size > 0)
    result->eval_strategy = train::Strategy::kEpoch;
  // Said before anything divides by it.
  if (result->eval_strategy == train::Strategy::kSteps && result->eval_steps < 1)
    throw_usage(options.place("eval_strategy") + " steps needs --eval_steps",
                "say after how many steps, as --eval_steps 100");
  result->per_device_eval_batch_size = options.integer("per_device_eval_batch_size");
  result->sample_prompts = options.text("sample_prompts");
  result->sample_max_new_tokens = options.integer("sample_max_new_tokens");
  result->sample_temperature = options.number("sample_temperature");
  result->sample_top_p = options.number("sample_top_p");
  result->sample_top_k = options.integer("sample_top_k");
  if (result->sample_temperature == 0)
    for (const char* name : {"sample_top_p", "sample_top_k"})
      if (options.given(name))
        throw_usage(options.place(name) + " needs a --sample_temperature above 0",
                    "0 always takes the likeliest token");
  if (result->eval_only) return;
  const bool evaluates = result->eval_strategy != train::Strategy::kNo;
  if (evaluates && result->eval_dataset.empty() && result->val_size == 0 &&
      result->sample_prompts.empty())
    throw_usage("an evaluation is asked for, but --eval_dataset is missing",
                "name a dataset, hold one out with --val_size, or use --eval_strategy no");
  if (result->eval_strategy != train::Strategy::kSteps && options.given("eval_steps"))
    throw_usage(options.place("eval_steps") + " contradicts --eval_strategy " +
                    options.text("eval_strategy"),
                "use --eval_strategy steps");
  result->eval_on_start = evaluates && options.flag("eval_on_start");
}

// As Hugging Face's Trainer wants it: what is best must have been both evaluated and saved.
void fill_best(const cli::Options& options, train::TrainOptions* result) {
  result->load_best_model_at_end = options.flag("load_best_model_at_end");
  result->greater_is_better = options.flag("greater_is_better");
  if (options.has("early_stopping_patience"))
    result->early_stopping_patience = options.integer("early_stopping_patience");
  result->early_stopping_threshold = options.number("early_stopping_threshold");
  result->track_best = result->load_best_model_at_end || result->early_stopping_patience > 0 ||
                       options.has("metric_for_best_model");
  if (result->early_stopping_patience == 0 && options.given("early_stopping_threshold"))
    throw_usage(options.place("early_stopping_threshold") + " needs --early_stopping_patience",
                "say after how many evaluations without improvement the run ends");
  if (!result->track_best || result->eval_only) return;
  if (result->eval_strategy == train::Strategy::kNo ||
      (result->eval_dataset.empty() && result->val_size == 0))
    throw_usage(
        "--load_best_model_at_end, --metric_for_best_model and --early_stopping_patience "
        "need evaluations",
        "name an --eval_dataset, or hold one out with --val_size");
  if (!result->load_best_model_at_end) return;
  if (!options.given("save_strategy") && !options.given("save_steps")) {
    result->save_strategy = result->eval_strategy;
    if (result->eval_steps > 0) result->save_steps = result->eval_steps;
  }
  if (result->save_strategy != result->eval_strategy)
    throw_usage("--load_best_model_at_end needs --save_strategy to be --eval_strategy",
                "leave --save_strategy out, or make them equal");
  if (result->save_strategy == train::Strategy::kSteps &&
      result->save_steps % result->eval_steps != 0)
    throw_usage("--load_best_model_at_end needs --save_steps to be a multiple of --eval_steps",
                "save every " + std::to_string(result->eval_steps) + " steps");
}

void fill_reports(const cli::Options& options, train::TrainOptions* result) {
  result->logging_steps = options.integer("logging_steps");
  result->log_format = choice<train::LogFormat>(options, "log_format", {"text", "json"});
  const std::string& names = options.text("report_to");
  bool none = false;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t comma = std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, comma - begin);
    begin = comma + 1;
    if (name == "jsonl")
      result->report_to_jsonl = true;
    else if (name == "tensorboard")
      result->report_to_tensorboard = true;
    else if (name == "none")
      none = true;
    else
      throw_usage(options.place("report_to") + ": \"" + name + "\" is no place to report to",
                  "give none, jsonl, tensorboard, or several with commas");
  }
  if (none && (result->report_to_jsonl || result->report_to_tensorboard))
    throw_usage(options.place("report_to") + ": none contradicts the others", "leave it out");
}

void fill_saving(const cli::Options& options, train::TrainOptions* result) {
  result->save_strategy = strategy(options, "save_strategy");
  result->save_steps = options.integer("save_steps");
  result->save_total_limit = options.integer("save_total_limit");
  if (result->save_strategy != train::Strategy::kSteps && options.given("save_steps"))
    throw_usage(options.place("save_steps") + " contradicts --save_strategy " +
                    options.text("save_strategy"),
                "use --save_strategy steps");
  // Of the two the one of higher rank counts: a flag resumes a run whose configuration said to
  // start anew.
  const cli::Source resume = options.source("resume_from_checkpoint"),
                    overwrite = options.source("overwrite_output_dir");
  const std::string& from = options.text("resume_from_checkpoint");
  const bool resumes = from != "false", overwrites = options.flag("overwrite_output_dir");
  if (resumes && overwrites && resume == overwrite)
    throw_usage("--overwrite_output_dir contradicts --resume_from_checkpoint",
                "leave one of them out");
  if (resumes && !(overwrites && overwrite > resume)) result->resume_from_checkpoint = from;
  result->overwrite_output_dir = overwrites && !(resumes && resume > overwrite);
}

std::vector<double> numbers(const cli::Options& options, const char* name) {
  std::vector<double> values;
  for (const std::string& word : options.list(name)) {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size())
      throw_usage(options.place(name) + ": \"" + word + "\" is no number", "give 0.7,0.3");
    values.push_back(value);
  }
  return values;
}

void fill_data(const cli::Options& options, train::TrainOptions* result) {
  result->template_name = options.text("template");
  result->cutoff_len = options.integer("cutoff_len");
  result->packing = options.flag("packing");
  if (options.has("max_samples")) result->max_samples = options.integer("max_samples");
  result->train_on_prompt = options.flag("train_on_prompt");
  result->mask_history = options.flag("mask_history");
  if (options.has("text_chunks"))
    result->text_chunks =
        choice<data::TextChunks>(options, "text_chunks", {"", "paragraph", "line", "packed"});
  if (options.has("mix_strategy"))
    result->mix_strategy = choice<data::MixStrategy>(
        options, "mix_strategy", {"concat", "interleave_under", "interleave_over"});
  result->dataset_weights = numbers(options, "dataset_weights");
  if (options.has("val_size")) result->val_size = options.number("val_size");
  result->streaming = options.flag("streaming");
  result->buffer_size = options.integer("buffer_size");
  if (!result->streaming)
    options.refuse_given({"buffer_size"}, "needs --streaming", "leave it out");
  if (!options.flag("cache")) {
    options.refuse_given({"tokenized_path"}, "contradicts --no-cache", "leave one of them out");
    return;
  }
  const bool named = options.has("tokenized_path");
  result->token_cache = named ? options.text("tokenized_path") : data::default_token_cache();
  // A folder that nobody named takes only what is worth keeping.
  result->token_cache_from = named ? 0 : kWorthCaching;
}

// What the run is, and the paths that this needs.
void fill_mode(const cli::Options& options, train::TrainOptions* result) {
  result->eval_only = options.flag("eval_only");
  result->dry_run = options.flag("dry_run");
  result->probe = options.flag("probe");
  if (result->probe && !result->dry_run)
    throw_usage(options.place("probe") + " needs --dry_run", "give both");
  if (options.has("preview")) result->preview = options.integer("preview");
  if ((result->eval_only ? 1 : 0) + (result->dry_run ? 1 : 0) + (result->preview > 0 ? 1 : 0) > 1)
    throw_usage("--eval_only, --dry_run and --preview exclude each other", "give one of them");
  result->model_path =
      options.require("model_path", "name a LoongIR folder; loongforge convert makes one");
  result->dataset = options.text("dataset");
  result->output_dir = options.text("output_dir");
  const bool has_eval_input =
      result->eval_only && (options.has("eval_dataset") || options.has("sample_prompts"));
  if (result->dataset.empty() && !has_eval_input)
    options.require("dataset", "name a file, or a dataset under LOONGFORGE_DATA");
  if (!result->eval_only && !result->dry_run && result->preview == 0)
    options.require("output_dir", "name the folder for checkpoints and logs");
}

}  // namespace

constinit const cli::Command train_command = {"train", summary_of("train"),
                                              "--model_path M --dataset D --output_dir O [options]",
                                              kTable, kForeignNames};

train::TrainOptions train_options(const cli::Options& options) {
  train::TrainOptions result;
  fill_mode(options, &result);
  result.adapter_path = options.text("adapter");
  fill_data(options, &result);
  fill_tuning(options, &result);
  fill_optimisation(options, &result);
  fill_precision(options, &result);
  result.fp8_overflow_log_level = choice<train::OverflowLogLevel>(options, "fp8_overflow_log_level",
                                                                  {"debug", "warning", "error"});
  result.gradient_checkpointing = options.flag("gradient_checkpointing");
  fill_evaluation(options, &result);
  fill_saving(options, &result);
  fill_best(options, &result);
  fill_reports(options, &result);
  result.without_effect = without_effect(options, result);
  result.json = options.flag("json");
  if (options.has("threads")) result.threads = static_cast<int>(options.integer("threads"));
  result.resolved_config_json = options.resolved().dump(2) + "\n";
  return result;
}

}  // namespace loongforge::cmd
