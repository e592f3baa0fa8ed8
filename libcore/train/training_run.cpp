#include "train/training_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "graph/parameter_loader.h"
#include "optim/clip.h"
#include "optim/schedule.h"
#include "support/counted.h"
#include "train/adapter_io.h"
#include "train/checkpoint_manifest.h"
#include "train/dropout.h"
#include "train/evaluate.h"
#include "train/fp8_report.h"
#include "train/run_identity.h"
#include "train/scaling_io.h"
#include "train/signals.h"

namespace loongforge::train {
namespace {

namespace fs = std::filesystem;
using support::counted;
using support::Json;

constexpr int kExitRequeue = 75, kExitInterrupted = 130;

std::string megabytes(uint64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MB";
}

// What Hugging Face's estimate of floating point operations leaves out.
int64_t embedding_parameters(const ir::Model& model) {
  int64_t count = 0;
  for (const ir::Node& node : model.graph.nodes) {
    const auto weight = node.params.find("weight");
    if (node.op != "embedding" || weight == node.params.end()) continue;
    if (const ir::TensorEntry* entry = model.find_tensor(weight->second))
      count += entry->rows() * entry->cols();
  }
  return count;
}

std::vector<optim::ParameterView> views_of(const graph::Parameters& params) {
  std::vector<optim::ParameterView> views;
  for (const graph::Trainable& t : params.trainables())
    views.push_back({t.name, t.rows, t.cols, t.offset, t.decay, t.master, t.master_offset});
  return views;
}

std::unique_ptr<BatchSource> make_batches(const TrainOptions& o, const TrainingData& data,
                                          const RunShape& shape) {
  if (!data.stream) return std::make_unique<PlannedBatches>(data.train, shape.rows, shape.plan);
  return std::make_unique<StreamedBatches>(
      *data.stream, StreamShape{o.buffer_size, o.per_device_train_batch_size, shape.rows_per_step,
                                o.packing, o.cutoff_len, o.seed});
}

}  // namespace

TrainingRun::TrainingRun(Session& session, const TrainingData& data)
    : session_(session),
      options_(session.options()),
      data_(data),
      shape_(shape_of(session.options(), data)),
      batches_(make_batches(options_, data, shape_)),
      random_(session.options().seed),
      rounding_(session.options().seed, session.pool().threads()),
      overflow_(session.options().fp8_overflow_log_level) {}

// Precision may change from one start to the next; what was trained so far stays as it is.
void TrainingRun::adopt_recipe() {
  const std::string now = recipe_text(options_);
  if (resume_ && !state_.recipe.empty() && state_.recipe != now)
    log_warning("the checkpoint was made with " + state_.recipe + ", this run goes on with " + now +
                ": results will differ from those of an undisturbed run");
  state_.recipe = now;
  if (resume_ && options_.recipe.scales == quant::ScaleRecipe::kDelayed)
    session_.scaling().restore(read_scaling(*resume_));
}

void TrainingRun::prepare_weights() {
  graph::ParameterOptions options = session_.parameter_options();
  const ir::Reader* reader = &session_.reader();
  const Json identity = run_identity(options_, shape_, data_, session_.reader().model());
  if (resume_) {
    state_ = read_state(*resume_);
    check_identity(state_.run, identity);
    if (options.train_all) {
      checkpoint_reader_ = std::make_unique<ir::Reader>(*resume_);
      reader = checkpoint_reader_.get();
    } else {
      const graph::LoraOptions asked = options.lora_options;
      options.lora_options = adapter_options(*resume_);
      session_.check_adapter(options.lora_options, resume_->string());
      options.lora_options.dropout = asked.dropout;
    }
  } else {
    state_.run = identity;
    if (options.train_all && session_.reader().model().quantize == "fp8")
      log_warning(
          "full fine-tuning starts from FP8 weights: convert the model with --quantize bf16 to "
          "keep their precision");
  }
  adopt_recipe();
  params_ = graph::Parameters::load(*reader, options, session_.pool());
  if (!resume_ && !options_.adapter_path.empty())
    load_adapter(options_.adapter_path, *params_, session_.pool());
  optim::AdamWOptions adam;
  adam.beta1 = options_.adam_beta1;
  adam.beta2 = options_.adam_beta2;
  adam.eps = options_.adam_epsilon;
  adam.weight_decay = options_.weight_decay;
  adam.moments = options_.moments;
  adam.rounding = &rounding_;
  optimizer_ = std::make_unique<optim::AdamW>(views_of(*params_), adam);
  if (resume_) restore(*resume_, state_, *params_, *optimizer_, session_.pool());
  if (resume_) {
    const std::string where = (*resume_ / kOwnStateFile).string();
    support::in_file(where, [&] { batches_->go_to(state_.data, where); });
  }
  executor_ = std::make_unique<graph::Executor>(
      graph::make_plan(session_.reader().model(), *params_,
                       session_.plan_options(graph::PlanMode::kTrain, shape_.longest_document)),
      *params_, session_.pool());
  executor_->set_scaling(&session_.scaling());
  executor_->set_measure_errors(options_.fp8_stats);
  executor_->reserve(shape_.longest_micro_batch);
  engine_ = std::make_unique<Engine>(*executor_, *params_, session_.pool(), shape_.lanes);
  release_free_memory();  // what loading needed and freed
}

// The checkpoints that there will be at once, and the one that is being written.
void TrainingRun::check_disk() const {
  const int64_t left = shape_.plan.total_steps() - state_.step;
  int64_t written = 1;
  if (options_.save_strategy == Strategy::kSteps) written += left / options_.save_steps;
  if (options_.save_strategy == Strategy::kEpoch) written += left / shape_.plan.steps_per_epoch();
  if (options_.save_total_limit > 0)
    written = std::min(written, options_.save_total_limit + 2);  // the best one
  uint64_t need = 0;
  if (__builtin_mul_overflow(checkpoint_bytes(*params_, *optimizer_, session_.reader()),
                             static_cast<uint64_t>(written), &need))
    need = UINT64_MAX;
  const uint64_t free = free_disk_bytes(folder_->path());
  if (free < need)
    throw_failed(folder_->path().string(),
                 "has " + megabytes(free) + " free, checkpoints will take " + megabytes(need),
                 "free some space or choose another --output_dir");
}

std::string TrainingRun::base_model() const { return session_.reader().model().model_name; }

void TrainingRun::announce() const {
  const auto& p = *params_;
  char share[32];
  std::snprintf(
      share, sizeof share, "%.3f %%",
      100.0 * static_cast<double>(p.trainable_count()) / static_cast<double>(p.parameter_count()));
  log_info(
      "parameters " + std::to_string(p.parameter_count()) + ", trainable " +
      std::to_string(p.trainable_count()) + " (" + share + "); " +
      (data_.stream ? "streamed rows" : counted(static_cast<int64_t>(shape_.rows.size()), "row")) +
      ", " + std::to_string(shape_.rows_per_step) + " a step, " +
      counted(shape_.plan.total_steps(), "step") + "; threads " +
      std::to_string(session_.pool().threads()));
  log_info(session_.recipe_text(p));
  session_.warn_of_length(std::max(shape_.longest_document, data_.eval ? data_.eval->longest() : 0),
                          data_.stream != nullptr);
  session_.log_notes(p);
  const int64_t buffers = engine_->buffers_needed(shape_.micro_batches_per_step);
  const uint64_t bytes =
      static_cast<uint64_t>(buffers) * static_cast<uint64_t>(p.trainable_floats()) * 4;
  log_info("gradients: summed in " + std::to_string(shape_.lanes) +
           (shape_.lanes == 1 ? " lane, " : " lanes, ") + std::to_string(buffers) +
           (buffers == 1 ? " buffer, " : " buffers, ") + megabytes(bytes));
  if (!resume_) return;
  const std::string end = resume_->string() + " is the end of the run: ",
                    nothing = ", nothing is left to train";
  if (state_.step >= shape_.plan.total_steps())
    log_info(
        end +
        (state_.step == 1 ? "its one step is" : "all " + counted(state_.step, "step") + " are") +
        " done" + nothing);
  else if (should_stop(best_rules(), state_.best))
    log_info(end + "it was stopped early at step " + std::to_string(state_.step) + " of " +
             std::to_string(shape_.plan.total_steps()) + ", after " +
             counted(state_.best.without_improvement, "evaluation") + " without improvement" +
             nothing);
  else
    log_info("continued from " + resume_->string() + " at step " + std::to_string(state_.step));
}

void TrainingRun::show(const Json& line, const std::string& text) const {
  const bool json = options_.log_format == LogFormat::kJson;
  session_.output().step_line(json ? line.dump().c_str() : text.c_str());
}

void TrainingRun::report(const StepFacts& facts) {
  if (facts.step % options_.logging_steps != 0 && facts.step != facts.total_steps && !facts.skipped)
    return;
  show(step_json(facts), step_text(facts));
  sinks_->step(facts);
  state_.log_history.push_back(step_history(facts));
}

StepFacts TrainingRun::step() {
  const Stopwatch watch;
  const int64_t index = state_.step;
  const int64_t micro_batches = batches_->begin_step(index);
  int64_t tokens = 0;
  std::optional<DropoutMasks> masks;
  graph::Batch batch;
  Engine::Result result = engine_->step(
      micro_batches,
      [&](int64_t i) -> const graph::Batch& {
        if (between_micro_batches_) between_micro_batches_(tokens);
        batch = batches_->batch(i);
        tokens += batch.tokens();
        return batch;
      },
      [&](int64_t i) -> const graph::MaskSource* {
        if (options_.lora_dropout <= 0) return nullptr;
        masks.emplace(random_, static_cast<uint64_t>(index) << 20 | static_cast<uint64_t>(i));
        return &*masks;
      },
      nullptr);
  const optim::Schedule schedule(optim::parse_schedule(options_.lr_scheduler_type),
                                 shape_.learning_rate, shape_.plan.total_steps(),
                                 shape_.warmup_steps);
  StepFacts facts;
  facts.lr = schedule.rate(index);
  const double scale = result.scale();
  const optim::GradientNorm norm =
      optim::gradient_norm(optimizer_->views(), result.gradients, scale, session_.pool());
  facts.loss = result.loss();
  facts.grad_norm = norm.norm;
  facts.skipped = !norm.finite || !std::isfinite(facts.loss);
  if (!facts.skipped) {
    optimizer_->step({params_->masters(), params_->masters_bf16()}, result.gradients, facts.lr,
                     scale * optim::clip_factor(norm.norm, options_.max_grad_norm),
                     session_.pool());
    params_->refresh(session_.pool(), &result.stats.tensors, options_.fp8_stats);
  }
  ++state_.step;
  state_.tokens_seen += tokens;
  const double seconds = watch.seconds();
  seconds_per_step_ = seconds_per_step_ == 0 ? seconds : 0.9 * seconds_per_step_ + 0.1 * seconds;
  facts.step = state_.step;
  facts.total_steps = shape_.plan.total_steps();
  facts.epoch = shape_.plan.epoch_of(state_.step);
  facts.tokens_per_s = static_cast<double>(tokens) / seconds;
  facts.step_ms = seconds * 1000;
  facts.eta_s = seconds_per_step_ * static_cast<double>(facts.total_steps - facts.step);
  facts.mem_mb = static_cast<int64_t>(process_memory().resident >> 20);
  finish_fp8(&facts, &result.stats.tensors);
  return facts;
}

// What the step's rounding to FP8 comes to: scales of the next step, counts, messages.
void TrainingRun::finish_fp8(StepFacts* facts, quant::StatsMap* stats) {
  session_.scaling().mark_planned(stats);
  session_.scaling().end_step(quant::AllRanks(), facts->skipped);
  fill_fp8_facts(*stats, facts);
  facts->clips = options_.max_grad_norm > 0;
  state_.saturated_steps += facts->saturated_gradients > 0;
  overflow_.add(state_.step, saturated_tensors(*stats));
  if (!options_.fp8_stats) return;
  facts->fp8_tensors = fp8_stats_json(*stats);
  quant::add_stats(&fp8_sum_, *stats);
}

void TrainingRun::fp8_summary() {
  if (state_.saturated_steps > 0)
    log_warning("gradients saturated in FP8 in " + std::to_string(state_.saturated_steps) + " of " +
                counted(state_.step, "step") +
                (options_.max_grad_norm > 0 ? ", which were clipped" : "") +
                "; a larger --fp8_scale_factor widens the range");
  if (!options_.fp8_stats) return;
  Json tensors = fp8_stats_json(fp8_sum_);
  if (options_.log_format == LogFormat::kJson) {
    Json line = Json::object();
    line.set("event", "fp8_stats");
    line.set("step", state_.step);
    line.set("tensors", tensors);
    session_.output().step_line(line.dump().c_str());
  }
  if (options_.json)
    result_.set("fp8_stats", std::move(tensors));
  else
    session_.print("rounding to FP8 by tensor, over this run's steps:\n" +
                   quant::stats_table(fp8_sum_));
}

// The one object of --json, also where the run is stopped before its end.
void TrainingRun::print_result(bool finished) {
  if (!options_.json) return;
  Json json = Json::object();
  json.set("output_dir", folder_->path().string());
  json.set("finished", finished);
  json.set("step", state_.step);
  json.set("total_steps", shape_.plan.total_steps());
  json.set("epoch", shape_.plan.epoch_of(state_.step));
  json.set("tokens", state_.tokens_seen);
  if (std::isfinite(last_loss_)) json.set("loss", last_loss_);
  std::error_code none;
  if (const fs::path latest = fs::read_symlink(folder_->path() / "latest", none); !none)
    json.set("latest", (folder_->path() / latest).string());
  for (const auto& [key, value] : result_.as_object()) json.set(key, value);
  if (!samples_.as_array().empty()) json.set("samples", samples_);
  session_.print(json.dump() + "\n");
}

// What prompts are answered with now; --json keeps it for the end.
void TrainingRun::answer_now() {
  if (!options_.json)
    session_.print("step " + std::to_string(state_.step) + " of " +
                   std::to_string(shape_.plan.total_steps()) + "\n");
  const Json answers = answer_prompts(session_, *params_);
  for (const Json& answer : answers.as_array()) {
    Json entry = Json::object();
    entry.set("step", state_.step);
    for (const auto& [key, value] : answer.as_object()) entry.set(key, value);
    if (options_.json) samples_.push_back(std::move(entry));
  }
}

void TrainingRun::evaluate_now() {
  if (data_.eval) {
    const EvalResult r = evaluate(session_, *params_, *data_.eval);
    const EvalFacts facts{state_.step, r.tokens, shape_.plan.epoch_of(state_.step), r.loss,
                          r.perplexity()};
    show(eval_json(facts), eval_text(facts));
    sinks_->evaluation(facts);
    state_.log_history.push_back(eval_history(facts));
    result_.set("eval_loss", r.loss);
    result_.set("perplexity", r.perplexity());
    if (state_.step > 0) note_evaluation(best_rules(), state_.step, r.loss, &state_.best);
  }
  if (!options_.sample_prompts.empty()) answer_now();
}

BestRules TrainingRun::best_rules() const {
  return {options_.track_best && data_.eval.has_value(), options_.greater_is_better,
          options_.early_stopping_patience, options_.early_stopping_threshold};
}

TrainerFacts TrainingRun::trainer_facts() const {
  TrainerFacts facts;
  facts.max_steps = shape_.plan.total_steps();
  facts.epoch = shape_.plan.epoch_of(state_.step);
  facts.num_train_epochs =
      static_cast<double>(facts.max_steps) / static_cast<double>(shape_.plan.steps_per_epoch());
  facts.train_batch_size = options_.per_device_train_batch_size;
  facts.logging_steps = options_.logging_steps;
  facts.eval_steps = options_.eval_steps;
  facts.save_steps = options_.save_steps;
  facts.flops_per_token =
      6.0 * static_cast<double>(params_->parameter_count() -
                                embedding_parameters(session_.reader().model()));
  facts.best = best_rules();
  return facts;
}

void TrainingRun::save() {
  if (saved_step_ == state_.step) return;
  state_.data = batches_->place();
  note_checkpoint(state_.step, &state_.best);
  // The model that the run began with, also when it was resumed: that checkpoint will be removed
  // one day.
  const CheckpointSource source{&session_.reader(), params_.get(),   optimizer_.get(),
                                base_model(),       trainer_facts(), &session_.scaling()};
  const fs::path folder =
      save_checkpoint(folder_->path(), state_, source, options_.save_total_limit);
  saved_step_ = state_.step;
  log_info("saved " + folder.string());
}

// The run is over: `final` names its model, trainer_state.json stands where scripts look for it,
// prompts that were not answered at the last evaluation are answered by the model that counts.
void TrainingRun::finish() {
  fs::path final_folder = folder_->checkpoint(state_.step);
  if (options_.load_best_model_at_end && state_.best.checkpoint_step > 0) {
    final_folder = folder_->checkpoint(state_.best.checkpoint_step);
    verify_checkpoint(final_folder);
    char metric[64];
    std::snprintf(metric, sizeof metric, "%.6f", *state_.best.metric);
    log_info("the best model is " + final_folder.string() + ": eval_loss " + metric);
    if (!options_.sample_prompts.empty() && state_.best.checkpoint_step != state_.step) {
      load_model(final_folder);
      answer_now();
    }
  }
  folder_->point_final(final_folder);
  result_.set("final", final_folder.string());
  if (state_.best.metric) {
    result_.set("best_eval_loss", *state_.best.metric);
    result_.set("best_step", state_.best.step);
  }
  write_text_atomic(folder_->path() / kTrainerStateFile,
                    trainer_state_json(state_, trainer_facts()).dump(2) + "\n");
}

// In place of the weights of the last step; only what needs no gradient can follow.
void TrainingRun::load_model(const fs::path& checkpoint) {
  engine_.reset();
  executor_.reset();
  if (!params_->options().train_all) return load_adapter(checkpoint, *params_, session_.pool());
  const graph::ParameterOptions options = params_->options();
  params_.reset();
  checkpoint_reader_ = std::make_unique<ir::Reader>(checkpoint);
  params_ = graph::Parameters::load(*checkpoint_reader_, options, session_.pool());
}

// The options, and of an adapter that was read what it has rather than what the options would have
// made.
std::string TrainingRun::resolved_config() const {
  if (options_.resolved_config_json.empty()) return "{}\n";
  const graph::LoraOptions& lora = params_->options().lora_options;
  if (params_->options().train_all || lora.source.is_null()) return options_.resolved_config_json;
  Json config = Json::parse(options_.resolved_config_json, "run_config.json");
  std::set<std::string> leaves;
  for (const auto& [path, module] : lora.modules) leaves.insert(graph::module_leaf(path));
  Json targets = Json::array();
  for (const std::string& leaf : leaves) targets.push_back(leaf);
  config.set("lora_rank", lora.rank);
  config.set("lora_alpha", static_cast<double>(lora.alpha));
  config.set("use_rslora", lora.rslora);
  config.set("lora_target", std::move(targets));
  return config.dump(2) + "\n";
}

bool TrainingRun::due(Strategy strategy, int64_t steps) const {
  if (strategy == Strategy::kSteps) return state_.step % steps == 0;
  if (strategy == Strategy::kEpoch) return state_.step % shape_.plan.steps_per_epoch() == 0;
  return false;
}

int TrainingRun::run() {
  // A model or a --lora_target that does not fit is refused before anything is written.
  graph::Parameters::declare(session_.reader(), session_.parameter_options(), session_.pool());
  folder_.emplace(options_.output_dir);
  resume_ = folder_->resume(options_.resume_from_checkpoint);
  prepare_weights();
  check_disk();
  batches_->read_ahead();
  folder_->begin(!resume_ && options_.overwrite_output_dir, state_.step, shape_.plan.total_steps());
  const fs::path& output_dir = folder_->path();
  write_text_atomic(output_dir / "run_config.json", resolved_config());
  Json info = Json::object();  // beside the configuration: what the run was made of
  info.set("version", LF_VERSION);
  info.set("model", base_model());
  info.set("dataset_crc32c", static_cast<int64_t>(data_.content_hash));
  if (!data_.stream) info.set("samples", static_cast<int64_t>(data_.train.size()));
  Json datasets = Json::array();
  for (const DataShare& share : data_.shares) {
    Json entry = Json::object();
    entry.set("file", share.file);
    if (!data_.stream) entry.set("samples", share.samples);
    datasets.push_back(std::move(entry));
  }
  info.set("datasets", std::move(datasets));
  if (!data_.stream) info.set("tokens", data_.tokens);
  if (!data_.stream) info.set("trained_tokens", data_.trained_tokens);
  write_text_atomic(output_dir / "run_info.json", info.dump(2) + "\n");
  announce();
  // A run that goes on takes these steps again; one that was to be resumed and had no checkpoint,
  // all.
  if (!options_.resume_from_checkpoint.empty())
    cut_metrics(output_dir / kMetricsFile, resume_ ? state_.step : -1);
  sinks_.emplace(output_dir, options_.report_to_jsonl, options_.report_to_tensorboard,
                 state_.step > 0 ? state_.step + 1 : 0);
  const Strategy eval_strategy =
      options_.eval_strategy == Strategy::kNo && data_.eval && options_.eval_steps > 0
          ? Strategy::kSteps
          : options_.eval_strategy;
  // Prompts without an evaluation are answered at the end.
  const bool evaluates = eval_strategy != Strategy::kNo || !options_.sample_prompts.empty();
  const SignalGuard signals;
  if (eval_strategy != Strategy::kNo && options_.eval_on_start && state_.step == 0) evaluate_now();
  while (state_.step < shape_.plan.total_steps() && !should_stop(best_rules(), state_.best)) {
    const StepFacts facts = step();
    last_loss_ = facts.loss;
    report(facts);
    skipped_in_a_row_ = facts.skipped ? skipped_in_a_row_ + 1 : 0;
    if (skipped_in_a_row_ > 0) ++state_.nonfinite_steps;
    if (skipped_in_a_row_ >= options_.max_nonfinite_steps)
      throw_failed(
          "", counted(skipped_in_a_row_, "step") + " in a row had gradients that are not finite",
          std::string("lower --learning_rate") +
              (resume_ || saved_step_ >= 0 ? "; the last checkpoint is intact" : ""));
    bool last = state_.step == shape_.plan.total_steps();
    if (evaluates && (last || due(eval_strategy, options_.eval_steps))) {
      evaluate_now();
      if (!last && should_stop(best_rules(), state_.best)) {
        log_info("stopped early: " + counted(state_.best.without_improvement, "evaluation") +
                 " without improvement");
        last = true;
      }
    }
    const StopRequest stop = SignalGuard::requested();
    if (last || stop != StopRequest::kNone || due(options_.save_strategy, options_.save_steps))
      save();
    if (stop == StopRequest::kNone || last) continue;
    print_result(false);
    return stop == StopRequest::kSaveAndRequeue ? kExitRequeue : kExitInterrupted;
  }
  fp8_summary();
  finish();
  print_result(true);
  return 0;
}

}  // namespace loongforge::train
