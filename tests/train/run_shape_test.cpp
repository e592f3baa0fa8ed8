#include <doctest/doctest.h>

#include "support/expect_error.h"
#include "train/training_run.h"

using namespace loongforge;

namespace {

data::SampleSet samples_of(size_t n) {
  std::vector<data::Sample> samples(n);
  for (size_t i = 0; i < n; ++i) {
    samples[i].ids.assign(10 + i, 1);
    samples[i].trained.assign(10 + i, 1);
  }
  return data::SampleSet(data::SampleTable::of(samples));
}

}  // namespace

TEST_CASE("a run's sizes follow from options and data") {
  train::TrainOptions o;
  o.per_device_train_batch_size = 4;
  o.gradient_accumulation_steps = 2;
  const auto samples = samples_of(30);
  const train::RunShape s = train::shape_run(o, samples);
  CHECK(s.rows_per_step == 8);
  CHECK(s.plan.total_steps() == 4);
  CHECK(s.lanes == 8);
  CHECK(s.micro_batches_per_step == 2);
  CHECK(s.learning_rate == 2e-4);
  CHECK(s.longest_document == 39);
  CHECK(s.longest_micro_batch <= 39 + 38 + 37 + 36);
  CHECK(s.longest_micro_batch > 4 * 24);  // the mean of four rows and more
  CHECK(s.warmup_steps == 1);
  o.finetuning_type = train::FinetuningType::kFull;
  o.global_batch_size = 12;
  const train::RunShape full = train::shape_run(o, samples);
  CHECK(full.lanes == 1);
  CHECK(full.learning_rate == 2e-5);
  CHECK(full.rows_per_step == 12);
}

TEST_CASE("an empty dataset cannot be trained on") {
  train::TrainOptions o;
  o.dataset = "nothing.jsonl";
  LF_CHECK_ERROR(train::shape_run(o, {}), ErrorCode::kBadData, "nothing.jsonl");
}
