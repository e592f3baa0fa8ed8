#include "train/training_data.h"

#include "base/log.h"

namespace loongforge::train {
namespace {

data::Dataset load_dataset(const TrainOptions& options, const data::PromptStyle& style,
                           const data::Tokenizer& tokenizer, const std::string& path_or_name) {
  data::DatasetOptions o;
  o.path_or_name = path_or_name;
  o.cutoff_len = options.cutoff_len;
  o.max_samples = options.max_samples;
  o.train_on_prompt = options.train_on_prompt;
  o.style = style;
  data::Dataset dataset = data::Dataset::load(o, tokenizer);
  const data::DatasetCounts& c = dataset.counts();
  log_info(
      dataset.file().string() + ": " + std::to_string(dataset.samples().size()) + " samples, " +
      std::to_string(c.tokens) + " tokens, " + std::to_string(c.trained_tokens) + " trained on" +
      (c.prompts_cut > 0 ? ", " + std::to_string(c.prompts_cut) + " prompts cut to --cutoff_len"
                         : "") +
      (c.answers_cut > 0 ? ", " + std::to_string(c.answers_cut) + " answers cut to --cutoff_len"
                         : ""));
  return dataset;
}

}  // namespace

TrainingData load_training_data(const TrainOptions& options, const data::PromptStyle& style,
                                const data::Tokenizer& tokenizer) {
  TrainingData result;
  const data::Dataset dataset = load_dataset(options, style, tokenizer, options.dataset);
  result.train = data::SampleSet(dataset.samples());
  result.counts = dataset.counts();
  result.content_hash = dataset.content_hash();
  if (!options.eval_dataset.empty())
    result.eval.emplace(load_dataset(options, style, tokenizer, options.eval_dataset).samples());
  return result;
}

std::optional<data::SampleSet> load_eval_data(const TrainOptions& options,
                                              const data::PromptStyle& style,
                                              const data::Tokenizer& tokenizer) {
  const std::string& name = options.eval_dataset.empty() ? options.dataset : options.eval_dataset;
  if (name.empty()) return std::nullopt;
  return data::SampleSet(load_dataset(options, style, tokenizer, name).samples());
}

}  // namespace loongforge::train
