#include "train/batching.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "support/sm4.h"

namespace loongforge::train {

std::vector<Row> make_rows(const data::SampleSet& samples, bool packing, int64_t cutoff_len) {
  std::vector<Row> rows;
  if (!packing) {
    for (uint32_t s = 0; s < samples.size(); ++s) rows.push_back({s});
    return rows;
  }
  std::vector<uint32_t> order(samples.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return samples.tokens_of(a) > samples.tokens_of(b);
  });
  std::multimap<int64_t, size_t> room;  // free tokens -> row
  for (uint32_t s : order) {
    const int64_t length = samples.tokens_of(s);
    auto best = room.lower_bound(length);
    if (best == room.end()) {
      rows.push_back({s});
      if (cutoff_len > length) room.emplace(cutoff_len - length, rows.size() - 1);
      continue;
    }
    const auto [left, row] = *best;
    room.erase(best);
    rows[row].push_back(s);
    if (left > length) room.emplace(left - length, row);
  }
  return rows;
}

graph::Batch collate(const data::SampleSet& samples, std::span<const Row> rows) {
  graph::Batch batch;
  for (const Row& row : rows) {
    for (uint32_t s : row) {
      const data::SampleView sample = samples[s];
      const size_t length = sample.size();
      batch.documents.push_back({batch.tokens(), static_cast<int64_t>(length)});
      for (size_t t = 0; t < length; ++t) {
        batch.ids.push_back(sample.ids[t]);
        const bool trained = t + 1 < length && sample.trained(t + 1);
        batch.targets.push_back(trained ? sample.ids[t + 1] : -1);
        batch.positions.push_back(static_cast<int32_t>(t));
        batch.valid += trained;
      }
    }
  }
  return batch;
}

StepPlan::StepPlan(int64_t rows, int64_t micro_rows, int64_t rows_per_step, double epochs,
                   int64_t max_steps, uint64_t seed)
    : rows_(rows), micro_rows_(micro_rows), rows_per_step_(rows_per_step), seed_(seed) {
  steps_per_epoch_ = (rows + rows_per_step - 1) / rows_per_step;
  const double wanted = std::ceil(epochs * static_cast<double>(steps_per_epoch_));
  total_steps_ = max_steps > 0 ? max_steps : std::max<int64_t>(1, static_cast<int64_t>(wanted));
}

const std::vector<uint32_t>& StepPlan::order(int64_t epoch) const {
  if (epoch != cached_epoch_) {
    cached_order_.resize(static_cast<size_t>(rows_));
    std::iota(cached_order_.begin(), cached_order_.end(), 0u);
    support::Sm4Random random(seed_);
    random.shuffle(support::kStreamShuffle, static_cast<uint64_t>(epoch),
                   std::span<uint32_t>(cached_order_));
    cached_epoch_ = epoch;
  }
  return cached_order_;
}

std::vector<std::vector<uint32_t>> StepPlan::micro_batches(int64_t step) const {
  const std::vector<uint32_t>& rows = order(step / steps_per_epoch_);
  const int64_t begin = step % steps_per_epoch_ * rows_per_step_,
                end = std::min(rows_, begin + rows_per_step_);
  std::vector<std::vector<uint32_t>> result;
  for (int64_t r = begin; r < end; r += micro_rows_)
    result.emplace_back(rows.begin() + r, rows.begin() + std::min(end, r + micro_rows_));
  return result;
}

}  // namespace loongforge::train
