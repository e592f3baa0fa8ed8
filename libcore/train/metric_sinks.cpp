#include "train/metric_sinks.h"

#include <string>
#include <vector>

namespace loongforge::train {

MetricSinks::MetricSinks(const std::filesystem::path& output_dir, bool jsonl, bool tensorboard, int64_t first_step) {
  if (jsonl) jsonl_.emplace(File::append(output_dir / "metrics.jsonl"));
  if (tensorboard) tensorboard_.emplace(output_dir / "runs", first_step);
}

void MetricSinks::line(const support::Json& json) {
  if (!jsonl_) return;
  const std::string text = json.dump() + "\n";
  jsonl_->write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// The tags are those of Hugging Face's TensorBoardCallback.
void MetricSinks::step(const StepFacts& f) {
  line(step_json(f));
  if (!tensorboard_) return;
  const std::vector<formats::TensorboardScalar> values = {
      {"train/loss", static_cast<float>(f.loss)},
      {"train/grad_norm", static_cast<float>(f.grad_norm)},
      {"train/learning_rate", static_cast<float>(f.lr)},
      {"train/epoch", static_cast<float>(f.epoch)},
      {"train/tokens_per_second", static_cast<float>(f.tokens_per_s)},
      {"train/memory_mb", static_cast<float>(f.mem_mb)},
      {"train/fp8_overflow", static_cast<float>(f.fp8_overflow)},
  };
  tensorboard_->scalars(f.step, values);
}

void MetricSinks::evaluation(const EvalFacts& f) {
  line(eval_json(f));
  if (!tensorboard_) return;
  const std::vector<formats::TensorboardScalar> values = {
      {"eval/loss", static_cast<float>(f.loss)},
      {"eval/perplexity", static_cast<float>(f.perplexity)},
  };
  tensorboard_->scalars(f.step, values);
}

}  // namespace loongforge::train
