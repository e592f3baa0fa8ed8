#include "train/metric_sinks.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "support/bytes.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;
using namespace loongforge::test;

TEST_CASE("metrics go where they are asked to, and a continued run appends") {
  TempDir dir;
  train::StepFacts step;
  step.step = 3;
  step.loss = 1.5;
  const train::EvalFacts eval{3, 100, 0.5, 1.25, 3.49};
  for (int session = 0; session < 2; ++session) {
    train::MetricSinks sinks(dir.path(), true, true, 3);
    sinks.step(step);
    sinks.evaluation(eval);
  }
  const std::string lines = read_text(dir / "metrics.jsonl");
  CHECK(lines == train::step_json(step).dump() + "\n" + train::eval_json(eval).dump() + "\n" +
                     train::step_json(step).dump() + "\n" + train::eval_json(eval).dump() + "\n");
  CHECK(std::distance(std::filesystem::directory_iterator(dir / "runs"), {}) == 2);
  const std::string events = read_file(std::filesystem::directory_iterator(dir / "runs")->path());
  const std::vector<formats::TensorboardScalar> loss = {{"eval/loss", 1.25f},
                                                        {"eval/perplexity", 3.49f}};
  const std::string record = formats::tensorboard_scalar_record(1, 3, loss);
  CHECK(events.find(record.substr(21, record.size() - 25)) !=
        std::string::npos);  // without lengths, time and checksums
  CHECK(events.find("train/learning_rate") != std::string::npos);
}

TEST_CASE("without a place nothing is written; a place that cannot be written is named") {
  TempDir dir;
  train::MetricSinks none(dir.path(), false, false, 1);
  none.step({});
  none.evaluation({});
  CHECK(dir.entries() == 0);
  std::filesystem::create_directory(dir / "metrics.jsonl");
  LF_CHECK_ERROR(train::MetricSinks(dir.path(), true, false, 1), ErrorCode::kFailed,
                 "metrics.jsonl");
}

TEST_CASE("of metrics, what a continued run takes again is cut off, and nothing else") {
  TempDir dir;
  const auto file = dir / "metrics.jsonl";
  train::cut_metrics(file, 5);  // absent
  CHECK(dir.entries() == 0);
  const std::string head =
      "{\"event\":\"eval\",\"step\":0}\n{\"event\":\"step\",\"step\":199}\n{\"event\":\"step\","
      "\"step\":200}\n"
      "{\"event\":\"eval\",\"step\":200}\n";
  const std::string tail = "{\"event\":\"step\",\"step\":201}\n{\"event\":\"eval\",\"step\":213}\n";
  const std::string others = "# a note\n{\"mine\":1}\n[201]\n\n";
  write_file(file, head + tail + others + "{\"event\":\"step\",\"st");
  train::cut_metrics(file, 200);
  CHECK(read_text(file) == head + others);
  const auto time = std::filesystem::last_write_time(file);
  train::cut_metrics(file, 200);  // nothing to do
  CHECK(read_text(file) == head + others);
  CHECK(std::filesystem::last_write_time(file) == time);
  train::cut_metrics(file, -1);
  CHECK(read_text(file) == others);
  write_file(file, "");
  train::cut_metrics(file, 200);
  CHECK(read_text(file).empty());
  CHECK(dir.entries() == 1);
}
