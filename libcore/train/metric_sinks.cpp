#include "train/metric_sinks.h"

#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/paths.h"

namespace loongforge::train {

namespace {

// -1: none that this program wrote.
int64_t step_of(std::string_view line) {
  try {
    const support::Json record = support::Json::parse(line, kMetricsFile);
    return record.is_object() ? record.get_int("step", -1) : -1;
  } catch (const Error&) {
    return -1;
  }
}

}  // namespace

void cut_metrics(const std::filesystem::path& path, int64_t last_step) {
  if (!file_exists(path)) return;
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  std::vector<std::string_view> kept;
  size_t bytes = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(begin, end + 1 - begin);
    begin = end + 1;
    if (step_of(line) > last_step) continue;
    kept.push_back(line);
    bytes += line.size();
  }
  if (bytes == text.size()) return;
  AtomicFile cut(path);
  for (const std::string_view line : kept)
    cut.file().write({reinterpret_cast<const uint8_t*>(line.data()), line.size()});
  cut.commit();
}

MetricSinks::MetricSinks(const std::filesystem::path& output_dir, bool jsonl, bool tensorboard,
                         int64_t first_step) {
  if (jsonl) jsonl_.emplace(File::append(output_dir / kMetricsFile));
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
