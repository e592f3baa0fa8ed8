#include "generate/generate.h"

#include <algorithm>

#include "base/error.h"

namespace loongforge::generate {
namespace {

graph::Batch next_batch(std::span<const int32_t> ids, int64_t position) {
  graph::Batch batch;
  for (size_t i = 0; i < ids.size(); ++i) {
    batch.ids.push_back(ids[i] * 2);
    batch.positions.push_back(static_cast<int32_t>(position + static_cast<int64_t>(i)));
  }
  batch.targets.assign(ids.size(), -1);
  batch.documents.push_back({0, static_cast<int64_t>(ids.size())});
  return batch;
}

}  // namespace

std::vector<int32_t> generate_tokens(graph::Executor& executor, int64_t vocab,
                                     std::span<const int32_t> prompt,
                                     const GenerateOptions& options,
                                     const std::function<void(int32_t)>& on_token) {
  if (prompt.empty()) throw_bad_data("", "a prompt without tokens cannot be continued");
  const int64_t limit = executor.plan().options.max_positions;
  const int64_t room = limit - static_cast<int64_t>(prompt.size());
  if (room <= 0)
    throw_bad_data("",
                   "a prompt of " + std::to_string(prompt.size()) + " tokens leaves no room in " +
                       std::to_string(limit),
                   "raise --cutoff_len");
  const int64_t count = std::min(options.max_new_tokens, room);
  const kernels::Elem elem = executor.plan().options.recipe.edge_elem();
  graph::KvCache cache(static_cast<int64_t>(prompt.size()) + count, elem);
  std::vector<float> logits(static_cast<size_t>(vocab));
  graph::RunRequest request;
  request.cache = &cache;
  request.logits = logits.data();

  Sampler sampler(options.sampling);
  std::vector<int32_t> result;
  std::vector<int32_t> feed(prompt.begin(), prompt.end());
  const int64_t choices = options.vocab_limit > 0 ? std::min(options.vocab_limit, vocab) : vocab;
  while (static_cast<int64_t>(result.size()) < count) {
    executor.run(next_batch(feed, cache.length()), request);
    const int32_t id = sampler.choose({logits.data(), static_cast<size_t>(choices)},
                                      options.prompt_number, cache.length());
    result.push_back(id);
    if (on_token) on_token(id);
    if (std::find(options.stop_ids.begin(), options.stop_ids.end(), id) != options.stop_ids.end())
      break;
    feed.assign(1, id);
  }
  return result;
}

}  // namespace loongforge::generate
