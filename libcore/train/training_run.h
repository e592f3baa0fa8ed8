// One training run: steps from where it stands to the end, with evaluation, checkpoints and
// signals. Thread-safety: one thread.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "support/sm4.h"
#include "train/batch_source.h"
#include "train/batching.h"
#include "train/checkpoint.h"
#include "train/engine.h"
#include "train/metric_sinks.h"
#include "train/rounding.h"
#include "train/run_folder.h"
#include "train/session.h"
#include "train/step_report.h"
#include "train/training_data.h"

namespace loongforge::train {

// Sizes of a run that follow from options and data.
struct RunShape {
  std::vector<Row> rows;
  StepPlan plan;
  int64_t lanes = 1;
  int64_t rows_per_step = 1;
  int64_t longest_document = 0;
  int64_t longest_micro_batch = 0;          // tokens
  std::vector<uint32_t> largest_rows = {};  // of that micro-batch
  int64_t micro_batches_per_step = 1;
  int64_t warmup_steps = 0;
  double learning_rate = 0;
};
RunShape shape_run(const TrainOptions& options, const data::SampleSet& samples);
// Of --streaming: what the longest samples would take.
RunShape shape_stream(const TrainOptions& options);
RunShape shape_of(const TrainOptions& options, const TrainingData& data);  // of either

// Bytes that a run takes besides the weights: what --dry-run adds up.
struct MemoryForecast {
  uint64_t process = 0;  // resident before weights are loaded: program, tokenizer, samples
  uint64_t weights = 0;  // packed weights, masters, adapters
  uint64_t optimizer = 0;
  uint64_t gradients = 0;
  uint64_t activations = 0;  // the arena at the largest micro-batch
  uint64_t scratch = 0;      // per-thread packing buffers
  uint64_t total() const {
    return process + weights + optimizer + gradients + activations + scratch;
  }
};
MemoryForecast forecast_memory(Session& session, const RunShape& shape, graph::Parameters& params);

// What the first steps of a run took.
struct ProbeResult {
  int64_t steps =
      0;  // measured, whole ones; 0: micro-batches of one; none of those: a part of a micro-batch
  int64_t micro_batches = 0, tokens = 0, micro_batch_tokens = 0;
  bool extrapolated = false;  // no step was whole
  bool largest_met = false;   // the largest micro-batch was run as well
  double seconds = 0;         // that what is measured took
  double tokens_per_s = 0, step_ms = 0;
  double eta_s = 0;  // of the whole run, by its tokens
  uint64_t peak_bytes =
      0;  // resident, the largest micro-batch of the run included where it was met
};

class TrainingRun {
 public:
  TrainingRun(Session& session, const TrainingData& data);
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;
  // The exit code: 0, 75 or 130.
  int run();
  // In place of run(): takes the first steps for about that many seconds and writes nothing. Ends
  // between micro-batches; where not even one of them fits into the time, a smaller batch is
  // measured.
  ProbeResult probe(double seconds);

 private:
  void prepare_weights();
  void adopt_recipe();
  void finish_fp8(StepFacts* facts, quant::StatsMap* stats);
  void fp8_summary();
  std::optional<ProbeResult> probe_part(double seconds, const Stopwatch& watch);
  ProbeResult probe_steps(double seconds, const Stopwatch& watch);
  void run_alone(const graph::Batch& batch);
  double tokens_per_step() const;
  void announce() const;
  StepFacts step();
  void check_disk() const;
  void report(const StepFacts& facts);
  void evaluate_now();
  void answer_now();
  void print_result(bool finished);
  void save();
  bool due(Strategy strategy, int64_t steps) const;
  std::string base_model() const;
  std::string resolved_config() const;
  void show(const support::Json& line, const std::string& text) const;
  BestRules best_rules() const;
  TrainerFacts trainer_facts() const;
  void finish();
  void load_model(const std::filesystem::path& checkpoint);

  Session& session_;
  const TrainOptions& options_;
  const TrainingData& data_;
  RunShape shape_;
  std::unique_ptr<BatchSource> batches_;
  std::optional<RunFolder> folder_;
  std::optional<std::filesystem::path> resume_;
  std::unique_ptr<ir::Reader> checkpoint_reader_;  // full fine-tuning continued: the masters
  std::unique_ptr<graph::Parameters> params_;
  std::unique_ptr<graph::Executor> executor_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<optim::AdamW> optimizer_;
  support::Sm4Random random_;
  Sm4Rounding rounding_;
  CheckpointState state_;
  std::optional<MetricSinks> sinks_;
  OverflowReporter overflow_;
  quant::StatsMap fp8_sum_;  // --fp8_stats: over the run's steps
  std::function<void(int64_t tokens)>
      between_micro_batches_;  // called before each with those that are done in the step
  support::Json result_ = support::Json::object(), samples_ = support::Json::array();  // of --json
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();
  int64_t saved_step_ = -1;
  int64_t skipped_in_a_row_ = 0;
  double seconds_per_step_ = 0;
};

}  // namespace loongforge::train
