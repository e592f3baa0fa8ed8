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

int64_t tokens_of(const data::SampleSet& samples, const std::vector<Row>& rows, const std::vector<uint32_t>& micro) {
  int64_t tokens = 0;
  for (uint32_t r : micro)
    for (uint32_t s : rows[r]) tokens += samples.tokens_of(s);
  return tokens;
}

}  // namespace

RunShape shape_run(const TrainOptions& o, const data::SampleSet& samples) {
  std::vector<Row> rows = make_rows(samples, o.packing, o.cutoff_len);
  if (rows.empty()) throw_bad_data(o.dataset, "the dataset holds no sample");
  const int64_t micro = o.per_device_train_batch_size;
  const int64_t per_step = o.global_batch_size > 0 ? o.global_batch_size : micro * o.gradient_accumulation_steps;
  const int64_t n = static_cast<int64_t>(rows.size());
  RunShape shape{std::move(rows), StepPlan(n, micro, per_step, o.num_train_epochs, o.max_steps, o.seed)};
  const bool full = o.finetuning_type == FinetuningType::kFull;
  shape.rows_per_step = per_step;
  shape.lanes = o.reduce_lanes > 0 ? o.reduce_lanes : full ? 1 : 8;
  shape.micro_batches_per_step = (std::min(per_step, n) + micro - 1) / micro;
  shape.learning_rate = o.learning_rate.value_or(full ? 2e-5 : 2e-4);
  shape.warmup_steps = optim::resolve_warmup(shape.plan.total_steps(), o.warmup_steps, o.warmup_ratio);
  shape.longest_document = samples.longest();
  // Every step's micro-batches are known: memory follows from the largest that will really run.
  constexpr int64_t kLooked = 1 << 16;
  const int64_t steps = std::min(shape.plan.total_steps(), kLooked);
  for (int64_t step = 0; step < steps; ++step)
    for (const auto& batch : shape.plan.micro_batches(step))
      shape.longest_micro_batch = std::max(shape.longest_micro_batch, tokens_of(samples, shape.rows, batch));
  return shape;
}

MemoryForecast forecast_memory(Session& session, const RunShape& shape, graph::Parameters& params) {
  MemoryForecast m;
  m.process = process_memory().resident;
  m.weights = params.resident_bytes();
  const uint64_t floats = static_cast<uint64_t>(params.trainable_floats()) * sizeof(float);
  m.optimizer = 2 * floats;
  graph::Plan plan = graph::make_plan(session.reader().model(), params,
                                      session.plan_options(graph::PlanMode::kTrain, shape.longest_document));
  graph::Executor executor(std::move(plan), params, session.pool());
  m.activations = executor.arena_bytes(shape.longest_micro_batch);
  Engine engine(executor, params, session.pool(), shape.lanes);
  m.gradients = static_cast<uint64_t>(engine.buffers_needed(shape.micro_batches_per_step)) * floats;
  m.scratch = static_cast<uint64_t>(session.pool().threads()) * kernels::gemm_scratch_bytes();
  return m;
}

}  // namespace loongforge::train
