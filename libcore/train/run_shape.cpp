// Sizes of a run and the memory it will take.
#include <algorithm>

#include "base/error.h"
#include "base/process_memory.h"
#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "optim/schedule.h"
#include "train/training_run.h"

namespace loongforge::train {
namespace {

// Counted with a --cutoff_len below the one that the samples were cut to as well: what would be
// left of them.
int64_t tokens_of(const data::SampleSet& samples, const std::vector<Row>& rows,
                  const std::vector<uint32_t>& micro, int64_t cutoff_len) {
  int64_t tokens = 0;
  for (uint32_t r : micro)
    for (uint32_t s : rows[r]) tokens += std::min(cutoff_len, samples.tokens_of(s));
  return tokens;
}

int64_t rows_per_step(const TrainOptions& o) {
  return o.global_batch_size > 0 ? o.global_batch_size
                                 : o.per_device_train_batch_size * o.gradient_accumulation_steps;
}

void fill_rates(const TrainOptions& o, RunShape& shape) {
  const bool full = o.finetuning_type == FinetuningType::kFull;
  shape.rows_per_step = rows_per_step(o);
  shape.lanes = o.reduce_lanes > 0 ? o.reduce_lanes : full ? 1 : 8;
  shape.learning_rate = o.learning_rate.value_or(full ? 2e-5 : 2e-4);
  shape.warmup_steps =
      optim::resolve_warmup(shape.plan.total_steps(), o.warmup_steps, o.warmup_ratio);
}

}  // namespace

RunShape shape_run(const TrainOptions& o, const data::SampleSet& samples) {
  std::vector<Row> rows = make_rows(samples, o.packing, o.cutoff_len);
  if (rows.empty()) throw_bad_data(o.dataset, "the dataset holds no sample");
  const int64_t micro = o.per_device_train_batch_size;
  const int64_t n = static_cast<int64_t>(rows.size());
  RunShape shape{std::move(rows),
                 StepPlan(n, micro, rows_per_step(o), o.num_train_epochs, o.max_steps, o.seed)};
  fill_rates(o, shape);
  shape.micro_batches_per_step = (std::min(shape.rows_per_step, n) + micro - 1) / micro;
  shape.longest_document = std::min(samples.longest(), o.cutoff_len);
  // Every step's micro-batches are known: memory follows from the largest that will really run.
  constexpr int64_t kLooked = 1 << 16;
  const int64_t steps = std::min(shape.plan.total_steps(), kLooked);
  for (int64_t step = 0; step < steps; ++step)
    for (const auto& batch : shape.plan.micro_batches(step)) {
      const int64_t tokens = tokens_of(samples, shape.rows, batch, o.cutoff_len);
      if (tokens <= shape.longest_micro_batch) continue;
      shape.longest_micro_batch = tokens;
      shape.largest_rows = batch;
    }
  return shape;
}

RunShape shape_stream(const TrainOptions& o) {
  const int64_t micro = o.per_device_train_batch_size, per_step = rows_per_step(o);
  int64_t rows = 0;  // of the whole run: an epoch of a stream, as in transformers
  if (__builtin_mul_overflow(per_step, o.max_steps, &rows)) throw_usage("--max_steps is too large");
  RunShape shape{{}, StepPlan(rows, micro, per_step, 1, o.max_steps, o.seed)};
  fill_rates(o, shape);
  shape.micro_batches_per_step = (per_step + micro - 1) / micro;
  shape.longest_document = o.cutoff_len;
  shape.longest_micro_batch = micro * o.cutoff_len;
  return shape;
}

RunShape shape_of(const TrainOptions& o, const TrainingData& data) {
  return data.stream ? shape_stream(o) : shape_run(o, data.train);
}

MemoryForecast forecast_memory(Session& session, const RunShape& shape, graph::Parameters& params) {
  MemoryForecast m;
  m.process = process_memory().resident;
  m.weights = params.resident_bytes();
  const uint64_t floats = static_cast<uint64_t>(params.trainable_floats()) * sizeof(float);
  std::vector<optim::ParameterView> views;
  for (const graph::Trainable& t : params.trainables())
    views.push_back({t.name, t.rows, t.cols, t.offset, t.decay});
  m.optimizer = optim::AdamW::state_bytes(views, session.options().moments);
  graph::Plan plan =
      graph::make_plan(session.reader().model(), params,
                       session.plan_options(graph::PlanMode::kTrain, shape.longest_document));
  graph::Executor executor(std::move(plan), params, session.pool());
  m.activations = executor.arena_bytes(shape.longest_micro_batch);
  Engine engine(executor, params, session.pool(), shape.lanes);
  m.gradients = static_cast<uint64_t>(engine.buffers_needed(shape.micro_batches_per_step)) * floats;
  m.scratch = static_cast<uint64_t>(session.pool().threads()) * kernels::gemm_scratch_bytes();
  return m;
}

}  // namespace loongforge::train
