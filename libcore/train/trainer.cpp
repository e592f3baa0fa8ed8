#include "train/trainer.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/file.h"
#include "train/adapter_io.h"
#include "train/dry_run.h"
#include "train/evaluate.h"
#include "train/fit_advice.h"
#include "train/session.h"
#include "train/training_run.h"

namespace loongforge::train {
namespace {

using support::Json;

TrainingData load_data(const Session& session) {
  return load_training_data(session.options(), session.style(), session.tokenizer());
}

// "records.jsonl line 12": where a sample begins; of a JSON array's the number of its record.
class SamplePlaces {
 public:
  std::string text(const std::string& file, int64_t number) {
    return std::filesystem::path(file).filename().string() + " " + word(file) + " " +
           std::to_string(number);
  }
  std::string word(const std::string& file) {
    const auto known = words_.find(file);
    if (known != words_.end()) return known->second;
    uint8_t first[4096];
    const File opened = File::open_read(file);
    const size_t n = static_cast<size_t>(std::min<uint64_t>(sizeof first, opened.size()));
    opened.read_at(0, {first, n});
    size_t at = n >= 3 && first[0] == 0xEF && first[1] == 0xBB && first[2] == 0xBF ? 3 : 0;
    while (at < n &&
           (first[at] == ' ' || first[at] == '\t' || first[at] == '\n' || first[at] == '\r'))
      ++at;
    const bool array =
        std::filesystem::path(file).extension() != ".txt" && at < n && first[at] == '[';
    return words_[file] = array ? "record" : "line";
  }

 private:
  std::map<std::string, std::string> words_;
};

int preview_samples(Session& session, bool colour) {
  const TrainingData data = load_data(session);
  const TrainOptions& o = session.options();
  SamplePlaces places;
  Json list = Json::array();
  if (!o.json)
    session.print(colour ? "what is learnt is green\n\n" : "what is learnt stands in [[ ]]\n\n");
  const auto show = [&](const data::Sample& sample, const std::string& file) {
    if (!o.json)
      return session.print(
          data::preview(sample, session.tokenizer(), colour, places.text(file, sample.line)) +
          "\n");
    Json entry = Json::object();
    entry.set("file", file);
    entry.set(places.word(file), sample.line);
    const Json shown = data::preview_json(sample, session.tokenizer());
    for (const auto& [key, value] : shown.as_object()) entry.set(key, value);
    list.push_back(std::move(entry));
  };
  if (data.stream) {
    data::Sample sample;
    for (int64_t i = 0; i < o.preview; ++i) {
      data.stream->next(sample);
      show(sample, data.stream->last_file());
    }
  } else {
    const size_t n = std::min(static_cast<size_t>(o.preview), data.train.size());
    for (size_t i = 0; i < n; ++i)
      show(data.train[i].sample(), data.shares[data.train.table_of(i)].file);
  }
  if (!o.json) return 0;
  Json json = Json::object();
  json.set("samples", std::move(list));
  session.print(json.dump() + "\n");
  return 0;
}

int evaluate_only(Session& session) {
  const TrainOptions& o = session.options();
  const std::optional<data::SampleSet> samples =
      load_eval_data(o, session.style(), session.tokenizer());
  if (samples) session.warn_of_length(samples->longest());
  auto params =
      graph::Parameters::load(session.reader(), session.parameter_options(), session.pool());
  session.log_notes(*params);
  if (!o.adapter_path.empty()) load_adapter(o.adapter_path, *params, session.pool());
  Json json = Json::object();
  if (samples) {
    const EvalResult r = evaluate(session, *params, *samples);
    json.set("eval_loss", r.loss);
    json.set("perplexity", r.perplexity());
    json.set("tokens", r.tokens);
    char text[128];
    std::snprintf(text, sizeof text, "eval_loss %.6f\nperplexity %.4f\ntokens %lld\n", r.loss,
                  r.perplexity(), static_cast<long long>(r.tokens));
    if (!o.json) session.print(text);
  }
  if (!o.sample_prompts.empty()) json.set("samples", answer_prompts(session, *params));
  if (o.json) session.print(json.dump() + "\n");
  return 0;
}

}  // namespace

int run_training(const TrainOptions& options, const Output& output) {
  Session session(options, output);
  if (options.preview > 0) return preview_samples(session, output.colour);
  if (options.dry_run) return dry_run(session, load_data(session), memory_for_run());
  if (options.eval_only) return evaluate_only(session);
  const TrainingData data = load_data(session);
  return TrainingRun(session, data).run();
}

}  // namespace loongforge::train
