#include "train/batch_source.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "base/error.h"
#include "support/sm4.h"

namespace loongforge::train {

using support::Json;

int64_t PlannedBatches::begin_step(int64_t step) {
  micro_batches_ = plan_.micro_batches(step);
  return static_cast<int64_t>(micro_batches_.size());
}

graph::Batch PlannedBatches::batch(int64_t i) const {
  std::vector<Row> rows;
  for (const uint32_t r : micro_batches_[static_cast<size_t>(i)]) rows.push_back(rows_[r]);
  return collate(samples_, rows);
}

StreamedBatches::StreamedBatches(data::SampleStream& stream, const StreamShape& shape)
    : stream_(stream), shape_(shape) {
  window_place_ = stream.place();
}

void StreamedBatches::read_window() {
  data::SampleTableBuilder table;
  data::Sample sample;
  const bool from_begin = stream_.at_begin_of_pass();
  for (int64_t i = 0; i < shape_.buffer_samples;) {
    if (stream_.next_of_pass(sample)) {
      table.add(sample);
      ++i;
    } else if (from_begin) {
      break;  // it holds all there is
    }
  }
  samples_ = data::SampleSet(table.finish());
  const std::vector<Row> rows = make_rows(samples_, shape_.packing, shape_.cutoff_len);
  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0u);
  support::Sm4Random(shape_.seed)
      .shuffle(support::kStreamShuffle, window_, std::span<uint32_t>(order));
  rows_.clear();
  for (const uint32_t r : order) rows_.push_back(rows[r]);
  used_ = 0;
}

void StreamedBatches::read_ahead() {
  if (rows_.empty()) read_window();
}

int64_t StreamedBatches::begin_step(int64_t) {
  data::SampleTableBuilder table;
  step_rows_.clear();
  const auto wanted = static_cast<size_t>(shape_.rows_per_step);
  while (step_rows_.size() < wanted) {
    if (used_ == rows_.size()) {
      if (!rows_.empty()) {
        ++window_;
        window_place_ = stream_.place();
      }
      read_window();
    }
    Row row;
    for (const uint32_t s : rows_[used_++]) {
      row.push_back(static_cast<uint32_t>(table.size()));
      table.add(samples_[s].sample());
    }
    step_rows_.push_back(std::move(row));
  }
  step_samples_ = data::SampleSet(table.finish());
  return (shape_.rows_per_step + shape_.micro_rows - 1) / shape_.micro_rows;
}

graph::Batch StreamedBatches::batch(int64_t i) const {
  const auto begin = static_cast<size_t>(i * shape_.micro_rows);
  const size_t end = std::min(step_rows_.size(), begin + static_cast<size_t>(shape_.micro_rows));
  return collate(step_samples_, std::span<const Row>(step_rows_).subspan(begin, end - begin));
}

Json StreamedBatches::place() const {
  Json json = Json::object();
  json.set("window", window_);
  json.set("rows_used", static_cast<int64_t>(used_));
  json.set("stream", window_place_);
  return json;
}

void StreamedBatches::go_to(const Json& place, const std::string& where) {
  const int64_t window = place.at("window", where).as_int("window");
  const int64_t used = place.at("rows_used", where).as_int("rows_used");
  stream_.go_to(place.at("stream", where), where);
  window_place_ = stream_.place();
  window_ = static_cast<uint64_t>(std::max<int64_t>(window, 0));
  rows_.clear();
  if (used > 0) read_window();
  if (window < 0 || used < 0 || used > static_cast<int64_t>(rows_.size()))
    throw_bad_data(where, "tells a place that the data does not have");
  used_ = static_cast<size_t>(used);
}

}  // namespace loongforge::train
