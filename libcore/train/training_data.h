// The samples of a run, as its options ask for them: read, tokenised, counted and reported.
// Thread-safety: values; immutable once loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "data/sample_table.h"
#include "data/tokenizer.h"
#include "train/options.h"

namespace loongforge::train {

struct TrainingData {
  data::SampleSet train;
  std::optional<data::SampleSet> eval;
  data::DatasetCounts counts;  // of train
  uint32_t content_hash = 0;   // of the files' bytes
};

// What --dataset names, and --eval_dataset.
TrainingData load_training_data(const TrainOptions& options, const data::PromptStyle& style,
                                const data::Tokenizer& tokenizer);
// What --eval_only evaluates: --eval_dataset, else --dataset; nothing where neither is given.
std::optional<data::SampleSet> load_eval_data(const TrainOptions& options,
                                              const data::PromptStyle& style,
                                              const data::Tokenizer& tokenizer);

}  // namespace loongforge::train
