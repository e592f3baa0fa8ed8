#include "train/session.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/paths.h"
#include "graph/parameter_loader.h"
#include "graph/validate.h"
#include "kernels/gemm.h"
#include "kernels/native_fp8.h"
#include "support/json.h"
#include "topo/machine.h"
#include "train/adapter_io.h"
#include "train/input_paths.h"
#include "train/training_data.h"

namespace loongforge::train {
namespace {

void positive(int64_t value, const char* flag) {
  if (value < 1)
    throw_usage(std::string("--") + flag + " must be at least 1, not " + std::to_string(value));
}
void not_negative(double value, const char* flag) {
  if (!(value >= 0) || !std::isfinite(value))
    throw_usage(std::string("--") + flag + " must not be negative");
}

// qlora is lora on a model whose weights are NF4, whichever of the two the run was called; such
// weights cannot be trained themselves.
void check_weights(const TrainOptions& o, const ir::Model& model) {
  const bool nf4 =
      std::any_of(model.tensors.begin(), model.tensors.end(),
                  [](const ir::TensorEntry& each) { return each.dtype == tensor::DType::kNf4; });
  if (nf4 && o.finetuning_type == FinetuningType::kFull && !o.eval_only)
    throw_usage("--finetuning_type full: the weights of " + o.model_path +
                    " are NF4, which cannot be trained",
                "use --finetuning_type qlora, or convert the model with --quantize bf16");
  if (nf4 && o.finetuning_type == FinetuningType::kLora && !o.eval_only)
    log_info("the weights of " + o.model_path + " are NF4: this is QLoRA");
  if (!nf4 && o.finetuning_type == FinetuningType::kQlora)
    throw_usage("--finetuning_type qlora: the weights of " + o.model_path + " are not NF4",
                "make such a model with loongforge convert --input-path MODEL --output-path FOLDER "
                "--quantize nf4, or use "
                "--finetuning_type lora");
}

}  // namespace

void check_options(const TrainOptions& o) {
  if (o.model_path.empty())
    throw_usage("--model_path is missing", "name a LoongIR folder made by loongforge convert");
  if (o.dataset.empty() && !(o.eval_only && !o.eval_dataset.empty()) &&
      !(o.eval_only && !o.sample_prompts.empty()))
    throw_usage("--dataset is missing", "name a file, or a dataset under LOONGFORGE_DATA");
  positive(o.lora_rank, "lora_rank");
  positive(o.per_device_train_batch_size, "per_device_train_batch_size");
  positive(o.per_device_eval_batch_size, "per_device_eval_batch_size");
  positive(o.gradient_accumulation_steps, "gradient_accumulation_steps");
  positive(o.logging_steps, "logging_steps");
  if (o.cutoff_len < 2) throw_usage("--cutoff_len must be at least 2");
  if (!(o.lora_dropout >= 0 && o.lora_dropout < 1)) throw_usage("--lora_dropout must be in [0, 1)");
  if (o.reduce_lanes != 0 && (o.reduce_lanes < 0 || (o.reduce_lanes & (o.reduce_lanes - 1)) != 0))
    throw_usage("--reduce_lanes " + std::to_string(o.reduce_lanes) + " is no power of two",
                "give 1, 2, 4, 8, 16, ...");
  if (o.global_batch_size != 0 && o.global_batch_size < o.per_device_train_batch_size)
    throw_usage("--global_batch_size is smaller than --per_device_train_batch_size",
                "it counts the rows of all micro-batches of a step");
  if (!(o.num_train_epochs > 0) && o.max_steps <= 0)
    throw_usage("--num_train_epochs must be positive");
  quant::check_recipe(o.recipe);
  if (!(o.warmup_ratio >= 0 && o.warmup_ratio <= 1))
    throw_usage("--warmup_ratio must be in [0, 1]");
  for (auto [value, flag] :
       {std::pair<double, const char*>{o.learning_rate.value_or(0), "learning_rate"},
        {o.weight_decay, "weight_decay"},
        {o.max_grad_norm, "max_grad_norm"},
        {o.lora_alpha, "lora_alpha"},
        {o.adam_epsilon, "adam_epsilon"}})
    not_negative(value, flag);
  if (!(o.adam_beta1 >= 0 && o.adam_beta1 < 1) || !(o.adam_beta2 >= 0 && o.adam_beta2 < 1))
    throw_usage("--adam_beta1 and --adam_beta2 must be in [0, 1)");
  if (o.eval_strategy == Strategy::kSteps && o.eval_steps < 1)
    throw_usage("--eval_strategy steps needs --eval_steps",
                "say after how many steps, as --eval_steps 100");
  if (o.save_strategy == Strategy::kSteps) positive(o.save_steps, "save_steps");
  if (o.save_total_limit != 0 && o.save_total_limit < 2)
    throw_usage("--save_total_limit must be at least 2 (0: no limit)",
                "one checkpoint alone could be the broken one");
  check_data_options(o);
  if (o.finetuning_type == FinetuningType::kFull && !o.adapter_path.empty())
    throw_usage("--adapter_path needs --finetuning_type lora");
}

Session::Session(const TrainOptions& options, const Output& output)
    : options_(options), output_(output), scaling_(options.recipe) {
  check_options(options);
  if (!options.adapter_path.empty()) options_.adapter_path = adapter_folder(options.adapter_path);
  check_paths(options_);
  for (const std::string& note : options.precision_notes) log_info(note);
  if (options.recipe.activations == quant::Activations::kCompute &&
      kernels::native_fp8() != nullptr)
    log_info(
        std::string("--fp8_activations compute: products run on this CPU's FP8 instructions (") +
        kernels::native_fp8()->name +
        "), so results differ in the last bits from those of CPUs without");
  for (const std::string& line : options.without_effect) log_warning(line);
  const topo::Machine machine = topo::read_machine();
  kernels::gemm_set_cache(static_cast<int64_t>(machine.l2_bytes) / std::max(1, machine.l2_cores));
  const int threads = options.threads > 0 ? options.threads : machine.default_threads();
  pool_ = std::make_unique<ThreadPool>(threads);
  reader_ = std::make_unique<ir::Reader>(options.model_path);
  vocab_ = graph::validate(reader_->model(), options.model_path);
  if (options.packing && graph::depends_on_longest_document(reader_->model().graph))
    throw_usage("--packing does not go with " + options.model_path +
                    ": its rope type is dynamic, so a document's results depend "
                    "on the longest one beside it",
                "train without --packing");
  check_weights(options, reader_->model());
  load_tokenizer();
  parameter_options();  // refuses wrong targets and environment before data is read
  if (!options.sample_prompts.empty())
    prompts_ = data::load_prompts(options.sample_prompts, style_, *tokenizer_);
  warn_of_long_answers();
}

void Session::warn_of_long_answers() const {
  const int64_t positions = longest_position();
  int64_t longest = 0;
  for (const data::Prompt& p : prompts_)
    longest = std::max(longest, static_cast<int64_t>(p.ids.size()));
  if (longest == 0 || positions <= 0 || longest + options_.sample_max_new_tokens <= positions)
    return;
  log_warning("a prompt of " + std::to_string(longest) + " tokens and --sample_max_new_tokens " +
              std::to_string(options_.sample_max_new_tokens) + " reach beyond the " +
              std::to_string(positions) +
              " tokens that the model was made for (max_position_embeddings)");
}

void Session::load_tokenizer() {
  if (!data::Tokenizer::present(options_.model_path))
    throw_no_input(options_.model_path, "the model has no tokenizer files, and the dataset is text",
                   "convert again with --tokenizer_path");
  tokenizer_ = data::Tokenizer::load(options_.model_path);
  if (tokenizer_->vocab_size() > vocab_)
    throw_bad_data(options_.model_path,
                   "the tokenizer has ids up to " + std::to_string(tokenizer_->vocab_size() - 1) +
                       ", the model's embedding has " + std::to_string(vocab_) + " rows");
  if (options_.template_name.empty()) {
    chat_ = data::ChatTemplate::load(options_.model_path);
    if (!chat_) log_info("the model has no chat template: --template alpaca is used");
  }
  style_.chat = chat_ ? &*chat_ : nullptr;
  style_.name = options_.template_name.empty() ? "alpaca" : options_.template_name;
}

// What is said of an adapter that is read: it goes on as it is.
void Session::check_adapter(const graph::LoraOptions& file, const std::string& where) const {
  const auto differs = [&](const std::string& flag, const std::string& asked,
                           const std::string& has) {
    throw_usage(
        "--" + flag + " " + asked + " contradicts the adapter " + where + ", which has " + has,
        "an adapter goes on as it is: leave the option out, or start a new one without the "
        "adapter");
  };
  for (const std::string& flag : options_.lora_given) {
    if (flag == "lora_rank" && options_.lora_rank != file.rank)
      differs(flag, std::to_string(options_.lora_rank), std::to_string(file.rank));
    if (flag == "lora_alpha" && options_.lora_alpha != file.alpha)
      differs(flag, support::Json(options_.lora_alpha).dump(), support::Json(file.alpha).dump());
    if (flag == "use_rslora" && options_.use_rslora != file.rslora)
      differs(flag, options_.use_rslora ? "true" : "false", file.rslora ? "true" : "false");
    if (flag != "lora_target") continue;
    std::set<std::string> has, asked;
    for (const auto& [path, module] : file.modules) has.insert(graph::module_leaf(path));
    for (const std::string& target : lora_targets()) asked.insert(target);
    std::string names;
    for (const std::string& leaf : has) names += (names.empty() ? "" : ",") + leaf;
    if (asked != has) differs(flag, options_.lora_target, names);
  }
}

std::vector<std::string> Session::lora_targets() const {
  const std::string& names = options_.lora_target;
  std::set<std::string> leaves;
  std::vector<std::string> targets;
  if (names == "all" || names == "all-linear") {
    for (const ir::Node& node : reader_->model().graph.nodes)
      if (node.op == "linear" && node.block >= 0)
        leaves.insert(graph::module_leaf(graph::module_path(node.params.at("weight"))));
    return {leaves.begin(), leaves.end()};
  }
  for (size_t begin = 0; begin <= names.size();) {
    const size_t comma = std::min(names.find(',', begin), names.size());
    if (comma > begin) targets.push_back(names.substr(begin, comma - begin));
    begin = comma + 1;
  }
  if (targets.empty()) throw_usage("--lora_target names nothing");
  return targets;
}

quant::Recipe Session::recipe() const {
  quant::check_recipe(options_.recipe);
  return options_.recipe;
}

std::string Session::recipe_text(const graph::Parameters& params) const {
  quant::Recipe used = recipe();
  const std::set<std::string>& idle = params.idle_scaling();
  std::erase_if(used.scale_overrides,
                [&](const quant::ScaleOverride& each) { return idle.contains(each.pattern); });
  if (idle.contains("")) used.scale_factor = 1;
  return used.describe(reader_->model().quantize == "nf4");
}

graph::ParameterOptions Session::parameter_options() const {
  graph::ParameterOptions p;
  p.recipe = recipe();
  p.precision_overrides = options_.precision_overrides;
  if (env_flag("LOONGFORGE_HUGEPAGE_ENABLE").value_or(false)) p.pages = Pages::kHuge;
  const bool evaluates = options_.eval_only && !options_.dry_run;
  if (options_.finetuning_type == FinetuningType::kFull) {
    p.train_all = !evaluates;
    p.bf16_masters = options_.bf16_masters;
    return p;
  }
  p.lora_options.seed = options_.seed;
  if (!options_.adapter_path.empty()) {
    p.lora = true;
    const uint64_t seed = p.lora_options.seed;
    p.lora_options = adapter_options(options_.adapter_path);
    if (!evaluates) check_adapter(p.lora_options, options_.adapter_path);
    p.lora_options.seed = seed;
    p.lora_options.dropout = options_.lora_dropout;
    return p;
  }
  p.lora = !evaluates;
  p.lora_options.rank = options_.lora_rank;
  p.lora_options.alpha = options_.lora_alpha;
  p.lora_options.dropout = options_.lora_dropout;
  p.lora_options.rslora = options_.use_rslora;
  if (options_.lora_target != "all" && options_.lora_target != "all-linear")
    p.lora_options.targets = lora_targets();
  return p;
}

graph::PlanOptions Session::plan_options(graph::PlanMode mode, int64_t max_positions) const {
  graph::PlanOptions o;
  o.mode = mode;
  o.recipe = recipe();
  o.gradient_checkpointing = options_.gradient_checkpointing;
  o.max_positions = max_positions;
  return o;
}

int64_t Session::longest_position() const {
  const support::Json& config = reader_->model().config;
  const support::Json* positions =
      config.is_object() ? config.find("max_position_embeddings") : nullptr;
  return positions != nullptr && positions->is_int() ? positions->as_int() : 0;
}

void Session::warn_of_length(int64_t longest, bool may) const {
  const int64_t positions = longest_position();
  if (positions <= 0 || longest <= positions) return;
  log_warning(std::string("samples ") + (may ? "may have " : "have ") + "up to " +
              std::to_string(longest) + " tokens, more than the " + std::to_string(positions) +
              " that the model was made for (max_position_embeddings); --cutoff_len " +
              std::to_string(positions) + " keeps them within");
}

void Session::log_notes(const graph::Parameters& params) const {
  for (const std::string& note : params.notes()) log_warning(note);
  if (params.decoded_weights() > 0) log_info(params.decoded_note());
}

std::vector<int32_t> Session::stop_ids() const { return tokenizer_->eos_ids(); }

}  // namespace loongforge::train
