// Generation with a KV cache, greedy or drawn. A token's logits have the same bits as in a training
// forward over the same document. Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/api.h"
#include "generate/sampler.h"
#include "graph/executor.h"

namespace loongforge::generate {

struct GenerateOptions {
  int64_t max_new_tokens = 128;
  std::vector<int32_t> stop_ids;  // HF ids; the stop token itself is part of the result
  int64_t vocab_limit = 0;     // > 0: rows of the head beyond it (padding) are never chosen; HF ids
  SamplingOptions sampling;    // greedy by default
  uint64_t prompt_number = 0;  // prompts of different numbers draw differently
};

// executor: a plan of mode kGenerate. prompt: HF ids, not empty. Returns the new HF ids. on_token:
// after each one, may be empty.
LF_API std::vector<int32_t> generate_tokens(graph::Executor& executor, int64_t vocab,
                                            std::span<const int32_t> prompt,
                                            const GenerateOptions& options,
                                            const std::function<void(int32_t)>& on_token = {});

}  // namespace loongforge::generate
