// Loss of a dataset, and sample generations: forward only.
// Thread-safety: one thread.
#pragma once

#include <cstdint>

#include "graph/parameters.h"
#include "support/json.h"
#include "train/session.h"

namespace loongforge::train {

struct EvalResult {
  double loss = 0;     // mean over trained-on tokens, nats
  int64_t tokens = 0;  // trained-on tokens
  double perplexity() const;
};

// The same to the bit for every --per_device_eval_batch_size.
EvalResult evaluate(Session& session, graph::Parameters& params, const data::SampleSet& samples);

// Answers to --sample_prompts, printed to stdout, unless with --json. Returns an array of
// {"prompt", "answer", "ids"}.
support::Json answer_prompts(Session& session, graph::Parameters& params);

}  // namespace loongforge::train
