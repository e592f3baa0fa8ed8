#include "train/dry_run.h"

#include <doctest/doctest.h>

#include "support/json.h"
#include "train/fit_advice.h"
#include "train/tiny_session.h"
#include "train/training_run.h"

using namespace loongforge;
using namespace loongforge::test;
using support::Json;

namespace {

std::string printed(const train::TrainOptions& o, uint64_t available) {
  train::Session session(o, captured_output());
  const train::TrainingData data = load_data(session);
  g_printed.clear();
  CHECK(train::dry_run(session, data, available) == 0);
  return g_printed;
}

}  // namespace

TEST_CASE("a run that does not fit is not tried, and says with what it would") {
  train::TrainOptions o = quickstart_options();
  o.per_device_train_batch_size = 16;
  o.probe = true;
  o.json = true;
  const Json fits = Json::parse(printed(o, uint64_t{1} << 40), "stdout");
  CHECK(fits.at("fits").as_bool());
  CHECK_FALSE(fits.contains("would_fit"));
  const uint64_t peak = static_cast<uint64_t>(fits.at("memory_bytes").at("peak").as_int());

#ifdef __SANITIZE_ADDRESS__
  MESSAGE("SKIPPED: with AddressSanitizer the process alone changes by more than what lacks here");
#else
  const Json json = Json::parse(printed(o, peak - 2'000'000), "stdout");
  CHECK_FALSE(json.at("fits").as_bool());
  CHECK_FALSE(json.contains("probe"));
  REQUIRE_FALSE(json.at("would_fit").as_array().empty());
  for (const Json& f : json.at("would_fit").as_array()) {
    CHECK(f.at("flags").as_string().starts_with("--"));
    CHECK(f.at("fits").as_bool());
    CHECK(f.at("peak_bytes").as_int() <= static_cast<int64_t>(peak));
  }
#endif
  o.json = false;
  const std::string text = printed(o, peak / 100);
  CHECK(text.find("does not fit: ") != std::string::npos);
  CHECK(text.find("  not even with: --") != std::string::npos);
  CHECK(text.find("tokens/s") == std::string::npos);
}

TEST_CASE("a probe takes the run's own first steps and measures them") {
  for (const bool full : {false, true}) {
    train::TrainOptions o = quickstart_options();
    o.max_steps = 4;
    o.max_samples = 40;
    o.per_device_train_batch_size = 2;
    o.gradient_accumulation_steps = 3;
    o.probe = true;
    o.json = true;
    if (full) o.finetuning_type = train::FinetuningType::kFull;
    const Json json = Json::parse(printed(o, train::memory_for_run()), "stdout");
    const Json& probe = json.at("probe");
    CHECK(probe.at("steps").as_int() == 3);  // the first one warms up
    CHECK(probe.at("tokens_per_s").as_double() > 0);
    CHECK(probe.at("step_ms").as_double() * 3 ==
          doctest::Approx(probe.at("seconds").as_double() * 1000));
    // Four of the seven steps of the dataset's only epoch.
    const double tokens = json.at("tokens").as_double() * 4 / 7;
    CHECK(probe.at("eta_s").as_double() ==
          doctest::Approx(tokens / probe.at("tokens_per_s").as_double()));
    CHECK(probe.at("peak_bytes").as_int() > 1'000'000);
    o.json = false;
    const std::string text = printed(o, train::memory_for_run());
    for (const char* says :
         {"probe           3 steps", "tokens/s", "time to the end 00:00:0", " measured, "})
      CHECK(text.find(says) != std::string::npos);
  }
}

// However long a step or a micro-batch of the run is, a probe ends soon after its time.
TEST_CASE("a probe that cannot take a whole step measures a part of one, and says so") {
  train::TrainOptions o = quickstart_options();
  o.per_device_train_batch_size = 1;
  o.gradient_accumulation_steps = 400;
  const auto probed = [&](double seconds) {
    train::Session session(o, captured_output());
    const train::TrainingData data = load_data(session);
    return train::TrainingRun(session, data).probe(seconds);
  };
  const train::ProbeResult whole = probed(1000);
  CHECK_FALSE(whole.extrapolated);
  CHECK(whole.largest_met);
  REQUIRE(whole.steps == 1);
  const train::ProbeResult few = probed(whole.step_ms / 1000 / 8);
  CHECK(few.extrapolated);
  CHECK(few.steps == 0);
  CHECK(few.micro_batches < 400);
  CHECK(few.tokens > 0);
  CHECK(few.seconds < whole.seconds);
  CHECK(few.step_ms == doctest::Approx(1000 * few.eta_s));  // one step is the run
  // A micro-batch of the whole dataset does not fit into no time at all: a part of it is measured.
  o.per_device_train_batch_size = 400;
  o.gradient_accumulation_steps = 1;
  const train::ProbeResult part = probed(1e-6);
  CHECK(part.extrapolated);
  CHECK(part.steps == 0);
  CHECK(part.micro_batches == 0);
  CHECK(part.tokens < part.micro_batch_tokens);
  CHECK_FALSE(part.largest_met);
  CHECK(part.eta_s > part.seconds);
}
