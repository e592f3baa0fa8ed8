// The samples of a run, as its options ask for them: read, tokenised, mixed, held out, counted and
// reported.
// Thread-safety: values; immutable once loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/api.h"
#include "data/dataset.h"
#include "data/sample_stream.h"
#include "data/sample_table.h"
#include "data/tokenizer.h"
#include "train/options.h"

namespace loongforge::train {

// What of a run comes from one dataset.
struct DataShare {
  std::string file;
  int64_t samples = 0;  // of the run, in one epoch
};

struct TrainingData {
  data::SampleSet train;
  std::optional<data::SampleSet> eval;     // --eval_dataset, or what --val_size holds out
  int64_t tokens = 0, trained_tokens = 0;  // of train
  uint32_t content_hash = 0;               // of the files' bytes
  std::vector<DataShare> shares;           // of train
  // --streaming: what is trained on instead of train.
  std::unique_ptr<data::SampleStream> stream{};
};

// Throws Error(kUsage) for choices about data that no run can have, naming the flag.
void check_data_options(const TrainOptions& options);

// The datasets that --dataset (or --eval_dataset) names.
LF_API std::vector<std::string> dataset_names(const std::string& list);

// What --dataset names, and what the run is evaluated on.
TrainingData load_training_data(const TrainOptions& options, const data::PromptStyle& style,
                                const data::Tokenizer& tokenizer);
// What --eval_only evaluates: --eval_dataset, what --val_size holds out, else all of --dataset;
// nothing where neither is given.
std::optional<data::SampleSet> load_eval_data(const TrainOptions& options,
                                              const data::PromptStyle& style,
                                              const data::Tokenizer& tokenizer);

// The choices about data that decide the bits of a run, in words: equal ones may be continued.
std::string data_identity(const TrainOptions& options);

}  // namespace loongforge::train
