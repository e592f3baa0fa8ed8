#include "data/sample_stream.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "support/counted.h"

namespace loongforge::data {
namespace {

using support::Json;

std::vector<double> weights_of(const MixRule& mix, size_t datasets) {
  return mix.weights.empty() ? std::vector<double>(datasets, 1.0) : mix.weights;
}

Json place_json(const SamplePlace& place, bool used_up) {
  Json json = Json::object();
  json.set("offset", place.record.offset);
  json.set("line", place.record.line);
  json.set("records", place.record.records);
  json.set("open", place.record.open);
  json.set("after_comma", place.record.after_comma);
  json.set("given", place.given);
  json.set("samples", place.samples);
  json.set("used_up", used_up);
  return json;
}

int64_t count_of(const Json& json, const char* key, const std::string& where) {
  const int64_t value = json.at(key, where).as_int(key);
  if (value < 0) throw_bad_data(where, std::string("\"") + key + "\" is negative");
  return value;
}

SamplePlace read_place(const Json& json, const std::string& where) {
  SamplePlace place;
  place.record.offset = static_cast<uint64_t>(count_of(json, "offset", where));
  place.record.line = count_of(json, "line", where);
  place.record.records = count_of(json, "records", where);
  place.record.open = json.at("open", where).as_bool("open");
  place.record.after_comma = json.at("after_comma", where).as_bool("after_comma");
  place.given = static_cast<uint64_t>(count_of(json, "given", where));
  place.samples = count_of(json, "samples", where);
  return place;
}

}  // namespace

SampleStream::SampleStream(const std::vector<std::string>& names, const DatasetOptions& each,
                           const MixRule& mix, uint64_t held, const Tokenizer& tokenizer)
    : strategy_(mix.strategy), draw_(weights_of(mix, names.size()), mix.seed) {
  for (const std::string& name : names) {
    DatasetOptions options = each;
    options.path_or_name = name;
    Source& source = sources_.emplace_back();
    source.reader = std::make_unique<SampleReader>(options, tokenizer);
  }
  hold_out(held);
}

void SampleStream::hold_out(uint64_t held) {
  SampleTableBuilder table;
  for (size_t d = 0; d < sources_.size(); ++d) {
    SampleReader& reader = *sources_[d].reader;
    const uint64_t share = held / sources_.size() + (d < held % sources_.size() ? 1 : 0);
    sources_[d].begin = reader.place();
    for (uint64_t i = 0; share > 0 && i <= share; ++i) {  // one more has to be there
      Sample sample;
      if (!reader.next(sample))
        throw_usage("--val_size leaves nothing to train on of " + reader.file().string() +
                        ": it has " + support::counted(static_cast<int64_t>(i), "sample"),
                    "hold out fewer");
      if (i == share) break;
      table.add(sample);
      sources_[d].begin = reader.place();
    }
    reader.go_to(sources_[d].begin);
  }
  held_ = table.finish();
}

void SampleStream::begin_pass() {
  if (given_ == 0)
    throw_bad_data(sources_[0].reader->file().string(), "holds no sample to train on");
  ++pass_;
  draws_ = given_ = 0;
  current_ = 0;
  for (Source& source : sources_) {
    source.reader->go_to(source.begin);
    source.used_up = false;
  }
}

// False: nothing is left of this source, and the pass ends.
bool SampleStream::take(Source& source, Sample& sample) {
  if (source.reader->next(sample)) return true;
  if (strategy_ != MixStrategy::kInterleaveOver) return false;
  source.used_up = true;
  if (std::all_of(sources_.begin(), sources_.end(), [](const Source& s) { return s.used_up; }))
    return false;
  source.reader->go_to(source.begin);
  if (source.reader->next(sample)) return true;
  throw_bad_data(source.reader->file().string(), "holds no sample to train on");
}

bool SampleStream::next_of_pass(Sample& sample) {
  while (true) {
    const bool in_order = strategy_ == MixStrategy::kConcat;
    last_ = in_order ? current_ : draw_.at(pass_, draws_++);
    if (take(sources_[last_], sample)) break;
    if (in_order && ++current_ < sources_.size()) continue;
    begin_pass();
    return false;
  }
  ++given_;
  return true;
}

void SampleStream::next(Sample& sample) {
  while (!next_of_pass(sample)) {
  }
}

std::string SampleStream::last_file() const { return sources_[last_].reader->file().string(); }

Json SampleStream::place() const {
  Json readers = Json::array();
  for (const Source& source : sources_)
    readers.push_back(place_json(source.reader->place(), source.used_up));
  Json json = Json::object();
  json.set("pass", pass_);
  json.set("draws", draws_);
  json.set("given", given_);
  json.set("dataset", static_cast<int64_t>(current_));
  json.set("readers", std::move(readers));
  return json;
}

void SampleStream::go_to(const Json& place, const std::string& where) {
  const Json::Array& readers = place.at("readers", where).as_array("readers");
  const auto dataset = static_cast<size_t>(count_of(place, "dataset", where));
  if (readers.size() != sources_.size() || dataset >= sources_.size())
    throw_bad_data(where, "was written by a run of other datasets");
  for (size_t d = 0; d < readers.size(); ++d) {
    sources_[d].reader->go_to(read_place(readers[d], where));
    sources_[d].used_up = readers[d].at("used_up", where).as_bool("used_up");
  }
  pass_ = static_cast<uint64_t>(count_of(place, "pass", where));
  draws_ = static_cast<uint64_t>(count_of(place, "draws", where));
  given_ = static_cast<uint64_t>(count_of(place, "given", where));
  current_ = dataset;
}

uint32_t SampleStream::content_hash() const {
  uint32_t crc = 0;
  for (const Source& source : sources_) crc = source.reader->sampled_hash(crc);
  return crc;
}

std::vector<std::string> SampleStream::files() const {
  std::vector<std::string> files;
  for (const Source& source : sources_) files.push_back(source.reader->file().string());
  return files;
}

}  // namespace loongforge::data
