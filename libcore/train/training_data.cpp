#include "train/training_data.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <utility>

#include "base/checksum.h"
#include "base/error.h"
#include "base/log.h"
#include "data/mixture.h"
#include "data/token_cache.h"
#include "support/counted.h"

namespace loongforge::train {
namespace {

using data::MixStrategy;
using support::counted;

constexpr const char* kStrategyNames[] = {"concat", "interleave_under", "interleave_over"};
constexpr const char* kChunkNames[] = {"record", "paragraph", "line", "packed"};

MixStrategy strategy_of(const TrainOptions& options) {
  return options.mix_strategy.value_or(
      options.dataset_weights.empty() ? MixStrategy::kConcat : MixStrategy::kInterleaveUnder);
}

data::MixRule mix_rule(const TrainOptions& options) {
  return {strategy_of(options), options.dataset_weights, options.seed};
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

// Files of a run, tokenised one after the other.
class Loader {
 public:
  Loader(const TrainOptions& options, const data::PromptStyle& style,
         const data::Tokenizer& tokenizer)
      : tokenizer_(tokenizer) {
    options_.cutoff_len = options.cutoff_len;
    options_.max_samples = options.max_samples;
    options_.train_on_prompt = options.train_on_prompt;
    options_.mask_history = options.mask_history;
    options_.text_chunks = options.text_chunks;
    options_.style = style;
    options_.token_cache = options.token_cache;
    options_.token_cache_from = options.token_cache_from;
    if (!options.token_cache.empty())
      options_.tokenizer_id = data::tokenizer_fingerprint(options.model_path);
  }

  std::unique_ptr<data::SampleStream> stream(const TrainOptions& options) const {
    return std::make_unique<data::SampleStream>(
        dataset_names(options.dataset), options_, mix_rule(options),
        static_cast<uint64_t>(options.val_size), tokenizer_);
  }

  std::vector<data::Dataset> load(const std::string& names) const {
    std::vector<data::Dataset> datasets;
    for (const std::string& name : dataset_names(names)) datasets.push_back(load_one(name));
    return datasets;
  }

 private:
  data::Dataset load_one(const std::string& name) const {
    data::DatasetOptions options = options_;
    options.path_or_name = name;
    data::Dataset dataset = data::Dataset::load(options, tokenizer_);
    const data::DatasetCounts& c = dataset.counts();
    std::string line = dataset.file().string() + ": " + counted(c.samples, "sample") + ", " +
                       counted(c.tokens, "token") + ", " + std::to_string(c.trained_tokens) +
                       " trained on";
    if (c.prompts_cut > 0) line += ", " + counted(c.prompts_cut, "prompt") + " cut to --cutoff_len";
    if (c.answers_cut > 0) line += ", " + counted(c.answers_cut, "answer") + " cut to --cutoff_len";
    if (dataset.from_cache()) line += "; from the token cache";
    log_info(line);
    return dataset;
  }

  data::DatasetOptions options_;
  const data::Tokenizer& tokenizer_;
};

std::vector<data::SampleTable> tables_of(const std::vector<data::Dataset>& datasets) {
  std::vector<data::SampleTable> tables;
  for (const data::Dataset& dataset : datasets) tables.push_back(dataset.samples());
  return tables;
}

// One dataset's own; of several, one over all of theirs in order.
uint32_t hash_of(const std::vector<data::Dataset>& datasets) {
  if (datasets.size() == 1) return datasets[0].content_hash();
  uint32_t crc = 0;
  for (const data::Dataset& dataset : datasets) {
    const uint32_t hash = dataset.content_hash();
    const uint8_t bytes[4] = {static_cast<uint8_t>(hash), static_cast<uint8_t>(hash >> 8),
                              static_cast<uint8_t>(hash >> 16), static_cast<uint8_t>(hash >> 24)};
    crc = crc32c(bytes, crc);
  }
  return crc;
}

struct Split {
  std::vector<std::vector<uint32_t>> kept;  // of each dataset, numbered through all of them
  std::vector<uint32_t> held;
};

// Samples are held out before datasets are mixed: one that is drawn twice must not stand on both
// sides.
Split split(const std::vector<data::SampleTable>& tables, const TrainOptions& options) {
  size_t total = 0;
  for (const data::SampleTable& table : tables) total += table.size();
  const std::vector<bool> held = options.val_size > 0
                                     ? data::hold_out(total, options.val_size, options.seed)
                                     : std::vector<bool>(total, false);
  Split result;
  uint32_t number = 0;
  for (const data::SampleTable& table : tables) {
    std::vector<uint32_t>& kept = result.kept.emplace_back();
    for (size_t i = 0; i < table.size(); ++i, ++number)
      (held[number] ? result.held : kept).push_back(number);
  }
  return result;
}

std::vector<uint32_t> mix(const Split& parts, const TrainOptions& options,
                          std::vector<DataShare>& shares) {
  std::vector<size_t> sizes;
  for (size_t d = 0; d < parts.kept.size(); ++d) {
    sizes.push_back(parts.kept[d].size());
    if (sizes.back() == 0)
      throw_usage("--val_size leaves nothing of " + shares[d].file, "hold out fewer samples");
  }
  std::vector<uint32_t> numbers;
  for (const data::MixPick& pick : data::mix_datasets(sizes, mix_rule(options))) {
    numbers.push_back(parts.kept[pick.dataset][pick.sample]);
    ++shares[pick.dataset].samples;
  }
  if (numbers.empty())
    throw_bad_data(options.dataset, "the mixture of these datasets holds no sample");
  return numbers;
}

void report(const TrainOptions& options, const TrainingData& data) {
  if (data.eval && options.val_size > 0)
    log_info(
        "held out for evaluation: " + counted(static_cast<int64_t>(data.eval->size()), "sample") +
        "; trained on: " + std::to_string(data.train.size()));
  if (data.shares.size() == 1) return;
  std::string line = std::string("mixed by ") +
                     kStrategyNames[static_cast<size_t>(strategy_of(options))] + ": " +
                     counted(static_cast<int64_t>(data.train.size()), "sample");
  for (const DataShare& share : data.shares) {
    char part[64];
    std::snprintf(
        part, sizeof part, ", %lld (%.1f %%) of ", static_cast<long long>(share.samples),
        100.0 * static_cast<double>(share.samples) / static_cast<double>(data.train.size()));
    line += part + share.file;
  }
  log_info(line);
}

}  // namespace

std::vector<std::string> dataset_names(const std::string& list) {
  std::error_code failed;  // a list of names may be too long for a path
  if (std::filesystem::exists(list, failed)) return {list};  // a file's name may hold a comma
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t comma = std::min(list.find(',', begin), list.size());
    const size_t first = std::min(list.find_first_not_of(' ', begin), comma);
    const size_t last = list.find_last_not_of(' ', comma == 0 ? 0 : comma - 1);
    if (first < comma) names.push_back(list.substr(first, last + 1 - first));
    begin = comma + 1;
  }
  return names;
}

void check_data_options(const TrainOptions& o) {
  const size_t datasets = dataset_names(o.dataset).size();
  if (!o.dataset.empty() && datasets == 0) throw_usage("--dataset names nothing");
  if (o.train_on_prompt && o.mask_history)
    throw_usage("--train_on_prompt contradicts --mask_history", "leave one of them out");
  if (o.val_size < 0 || !std::isfinite(o.val_size) ||
      (o.val_size > 1 && o.val_size != std::floor(o.val_size)))
    throw_usage("--val_size must be a share below 1 or a whole number");
  if (o.val_size > 0 && !o.eval_dataset.empty())
    throw_usage("--val_size contradicts --eval_dataset", "leave one of them out");
  if (o.streaming) {
    if (o.max_steps <= 0 && !o.eval_only && o.preview == 0)
      throw_usage("--streaming needs --max_steps", "a stream has no end of its own");
    if (o.val_size > 0 && o.val_size < 1)
      throw_usage("--val_size must be a count with --streaming",
                  "how many samples there are is not known");
    if (o.buffer_size < 1) throw_usage("--buffer_size must be at least 1");
  }
  if (!o.dataset_weights.empty()) {
    if (o.dataset_weights.size() != datasets)
      throw_usage("--dataset_weights has " +
                      counted(static_cast<int64_t>(o.dataset_weights.size()), "number") + " for " +
                      counted(static_cast<int64_t>(datasets), "dataset"),
                  "give one for each");
    if (o.mix_strategy == MixStrategy::kConcat)
      throw_usage("--dataset_weights contradicts --mix_strategy concat",
                  "use interleave_under or interleave_over");
    for (const double weight : o.dataset_weights)
      if (!(weight > 0) || !std::isfinite(weight)) throw_usage("--dataset_weights must be above 0");
  }
}

namespace {

TrainingData open_stream(const TrainOptions& options, const Loader& loader) {
  TrainingData result;
  result.stream = loader.stream(options);
  result.content_hash = result.stream->content_hash();
  std::string line = "streamed from ";
  for (const std::string& file : result.stream->files()) {
    line += (result.shares.empty() ? "" : ", ") + file;
    result.shares.push_back({file});
  }
  line += ", " + std::to_string(options.buffer_size) + " samples at a time";
  if (result.shares.size() > 1)
    line += std::string(", mixed by ") + kStrategyNames[static_cast<size_t>(strategy_of(options))];
  log_info(line);
  if (options.val_size > 0) {
    result.eval.emplace(result.stream->held());
    log_info("held out for evaluation: the first " +
             counted(static_cast<int64_t>(result.eval->size()), "sample"));
  }
  if (!options.eval_dataset.empty())
    result.eval.emplace(tables_of(loader.load(options.eval_dataset)));
  return result;
}

}  // namespace

TrainingData load_training_data(const TrainOptions& options, const data::PromptStyle& style,
                                const data::Tokenizer& tokenizer) {
  const Loader loader(options, style, tokenizer);
  if (options.streaming) return open_stream(options, loader);
  TrainingData result;
  const std::vector<data::Dataset> datasets = loader.load(options.dataset);
  const std::vector<data::SampleTable> tables = tables_of(datasets);
  for (const data::Dataset& dataset : datasets) result.shares.push_back({dataset.file().string()});
  result.content_hash = hash_of(datasets);
  if (tables.size() == 1 && options.val_size == 0) {
    result.train = data::SampleSet(tables);
    result.shares[0].samples = static_cast<int64_t>(result.train.size());
  } else {
    Split parts = split(tables, options);
    result.train = data::SampleSet(tables, mix(parts, options, result.shares));
    if (options.val_size > 0) result.eval.emplace(tables, std::move(parts.held));
  }
  for (size_t i = 0; i < result.train.size(); ++i) {
    const data::SampleView sample = result.train[i];
    result.tokens += static_cast<int64_t>(sample.size());
    result.trained_tokens += sample.trained_tokens;
  }
  if (!options.eval_dataset.empty())
    result.eval.emplace(tables_of(loader.load(options.eval_dataset)));
  report(options, result);
  return result;
}

std::optional<data::SampleSet> load_eval_data(const TrainOptions& options,
                                              const data::PromptStyle& style,
                                              const data::Tokenizer& tokenizer) {
  const Loader loader(options, style, tokenizer);
  const std::string& names = options.eval_dataset.empty() ? options.dataset : options.eval_dataset;
  if (names.empty()) return std::nullopt;
  if (options.streaming && options.val_size > 0)
    return data::SampleSet(loader.stream(options)->held());
  std::vector<data::SampleTable> tables = tables_of(loader.load(names));
  if (options.val_size == 0) return data::SampleSet(std::move(tables));
  Split parts = split(tables, options);
  return data::SampleSet(std::move(tables), std::move(parts.held));
}

std::string data_identity(const TrainOptions& options) {
  std::string words = options.train_on_prompt ? "prompts and answers"
                      : options.mask_history  ? "last answers"
                                              : "answers";
  if (!options.template_name.empty()) words += "; template " + options.template_name;
  if (options.text_chunks != data::TextChunks::kRecord)
    words += std::string("; chunks ") + kChunkNames[static_cast<size_t>(options.text_chunks)];
  if (options.max_samples > 0) words += "; first " + std::to_string(options.max_samples);
  if (options.val_size > 0) words += "; without " + number(options.val_size);
  if (strategy_of(options) != MixStrategy::kConcat)
    words += std::string("; ") + kStrategyNames[static_cast<size_t>(strategy_of(options))];
  if (options.streaming) words += "; streamed by " + std::to_string(options.buffer_size);
  for (const double weight : options.dataset_weights) words += " " + number(weight);
  return words;
}

}  // namespace loongforge::train
