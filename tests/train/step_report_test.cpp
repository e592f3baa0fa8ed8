#include "train/step_report.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/log.h"

using namespace loongforge;

namespace {

std::vector<std::pair<LogLevel, std::string>> g_lines;
void collect(LogLevel level, std::string_view text) {
  g_lines.emplace_back(level, std::string(text));
}

}  // namespace

TEST_CASE("a step's JSON object holds what scripts read") {
  train::StepFacts f;
  f.step = 3;
  f.loss = 1.25;
  f.lr = 1e-4;
  f.grad_norm = 0.5;
  f.tokens_per_s = 100.04;
  f.mem_mb = 900;
  const support::Json json = train::step_json(f);
  for (const char* key :
       {"step", "loss", "lr", "grad_norm", "tokens_per_s", "step_ms", "mem_mb", "fp8_overflow"})
    CHECK(json.contains(key));
  CHECK(json.at("step").as_int() == 3);
  CHECK(json.at("loss").as_double() == 1.25);
  f.loss = std::nan("");
  f.skipped = true;
  const support::Json skipped = train::step_json(f);
  CHECK(skipped.at("loss").is_null());
  CHECK(skipped.at("skipped").as_bool());
  CHECK(train::step_text(f).find("SKIPPED") != std::string::npos);
}

TEST_CASE("a step's line fits a terminal of 80 columns") {
  train::StepFacts f;
  f.step = 1234;
  f.total_steps = 5678;
  f.loss = 11.2345;
  f.lr = 1e-4;
  f.grad_norm = 12.345;
  f.tokens_per_s = 1234;
  f.mem_mb = 900;
  f.eta_s = 3661;
  CHECK(train::step_text(f) ==
        "step 1234/5678  loss 11.2345  lr 1.0e-04  norm 12.345  1234 tok/s  900 MB  ETA 1:01:01");
  CHECK(train::step_text(f).size() <= 88);
  f.eta_s = 754;
  f.step = 12;
  f.total_steps = 400;
  f.grad_norm = 0.512;
  f.loss = 2.5;
  CHECK(train::step_text(f).size() <= 80);
  f.fp8_overflow = 1.21e-5;
  CHECK(train::step_text(f).ends_with("  900 MB  ETA 12:34  overflow 1.2e-05"));
  f.saturated_gradients = 37;
  CHECK(train::step_text(f).ends_with("  1234 tok/s  ETA 12:34  CLIPPED: 37"));
  f.step = 12345;
  f.total_steps = 56789;
  f.loss = 11.2345;
  f.grad_norm = 123.456;
  f.tokens_per_s = 12345;
  f.eta_s = 36610;
  f.saturated_gradients = 123456;
  CHECK(train::step_text(f).size() <= 100);
}

TEST_CASE("overflow messages keep their phrase, are summed and come at most every 50 steps") {
  g_lines.clear();
  set_log_sink(collect);
  train::OverflowReporter reporter(train::OverflowLogLevel::kError);
  for (int64_t step = 1; step <= 60; ++step)
    reporter.add(step, {{"layers.3.mlp.down_proj", 2}, {"layers.0.self_attn.q_proj", 1}});
  set_log_sink(nullptr);
  REQUIRE(g_lines.size() == 2);
  CHECK(g_lines[0].first == LogLevel::kError);
  CHECK(
      g_lines[0].second.find("FP8 overflow detected in layer.layers.3.mlp.down_proj: 2 elements") !=
      std::string::npos);
  CHECK(g_lines[1].second.find("100 elements (150 in 2 layers) up to step 51") !=
        std::string::npos);
}

TEST_CASE("no overflow, no message") {
  g_lines.clear();
  set_log_sink(collect);
  train::OverflowReporter reporter(train::OverflowLogLevel::kWarning);
  for (int64_t step = 1; step <= 200; ++step) reporter.add(step, {});
  set_log_sink(nullptr);
  CHECK(g_lines.empty());
}
