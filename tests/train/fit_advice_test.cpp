#include "train/fit_advice.h"

#include <doctest/doctest.h>

#include <sstream>

#include "base/process_memory.h"
#include "train/tiny_session.h"

using namespace loongforge;
using namespace loongforge::test;

namespace {

// What the flags of an advice say, read as a user's would be.
train::TrainOptions with_flags(train::TrainOptions o, const std::string& flags) {
  std::istringstream words(flags);
  for (std::string flag; words >> flag;) {
    if (flag == "--gradient_checkpointing")
      o.gradient_checkpointing = true;
    else if (flag == "--per_device_train_batch_size")
      words >> o.per_device_train_batch_size;
    else if (flag == "--gradient_accumulation_steps")
      words >> o.gradient_accumulation_steps;
    else if (flag == "--reduce_lanes")
      words >> o.reduce_lanes;
    else if (flag == "--cutoff_len")
      words >> o.cutoff_len;
    else if (std::string word; flag == "--fp8_precision" && words >> word && word == "e4m3")
      o.recipe.precision = quant::RunPrecision::kFp8;
    else if (flag == "--finetuning_type" && words >> word && word == "lora")
      o.finetuning_type = train::FinetuningType::kLora;
    else if (flag == "--moments" && words >> word)
      o.moments = *optim::parse_moment_format(word);
    else if (flag == "--master" && words >> word && word == "bf16")
      o.bf16_masters = true;
    else
      FAIL("unknown advice " << flag);
  }
  return o;
}

// The forecast of a run of its own, its samples cut anew.
train::MemoryForecast forecast(const train::TrainOptions& o) {
  train::Session session(o, captured_output());
  const train::TrainingData data = load_data(session);
  auto params =
      graph::Parameters::declare(session.reader(), session.parameter_options(), session.pool());
  train::MemoryForecast m = train::forecast_memory(session, train::shape_of(o, data), *params);
  m.process = 0;
  return m;
}

}  // namespace

TEST_CASE("flags that are said to fit do, by the forecast of a run that has them") {
  for (const bool full : {false, true}) {
    train::TrainOptions o = quickstart_options();
    o.per_device_train_batch_size = 12;
    o.gradient_accumulation_steps = 4;
    if (full) {
      o.finetuning_type = train::FinetuningType::kFull;
      o.recipe.precision = quant::RunPrecision::kFp32;
      o.reduce_lanes = 4;
    }
    const uint64_t whole = forecast(o).total();
    train::Session session(o, captured_output());
    const train::TrainingData data = load_data(session);
    for (const double share : {0.99, 0.8, 0.6, 0.45}) {
      const uint64_t bytes = static_cast<uint64_t>(share * static_cast<double>(whole));
      const auto advice = train::flags_that_fit(session, data, 0, bytes);
      CAPTURE(share);
      REQUIRE_FALSE(advice.empty());
      for (const train::FittingFlags& a : advice) {
        CAPTURE(a.flags);
        const train::TrainOptions changed = with_flags(o, a.flags);
        CHECK(a.forecast.total() == forecast(changed).total());
        CHECK(a.fits == (a.forecast.total() <= bytes));
        // The same rows make a step.
        CHECK(changed.per_device_train_batch_size * changed.gradient_accumulation_steps == 48);
      }
    }
    CHECK(session.options().per_device_train_batch_size == 12);  // as if, no more
  }
}

TEST_CASE("where nothing is enough the smallest run is named as one that does not fit") {
  train::TrainOptions o = quickstart_options();
  o.per_device_train_batch_size = 8;
  train::Session session(o, captured_output());
  const train::TrainingData data = load_data(session);
  const auto advice = train::flags_that_fit(session, data, 0, 1000);
  REQUIRE(advice.size() == 1);
  CHECK_FALSE(advice[0].fits);
  for (const char* flag : {"--gradient_checkpointing", "--per_device_train_batch_size 1"})
    CHECK(advice[0].flags.find(flag) != std::string::npos);
  CHECK(advice[0].forecast.total() < forecast(o).total());
}

TEST_CASE("what a run can have is what is free and what it has") {
  CHECK(train::memory_for_run() > process_memory().resident);
}
