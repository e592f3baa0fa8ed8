#include "train/trainer.h"

#include <cmath>
#include <cstdio>
#include <optional>

#include "base/error.h"
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

int preview_samples(Session& session, bool colour) {
  const TrainingData data = load_data(session);
  if (data.stream) {
    data::Sample sample;
    for (int64_t i = 0; i < session.options().preview; ++i) {
      data.stream->next(sample);
      session.print(data::preview(sample, session.tokenizer(), colour) + "\n");
    }
    return 0;
  }
  const size_t n = std::min(static_cast<size_t>(session.options().preview), data.train.size());
  for (size_t i = 0; i < n; ++i)
    session.print(data::preview(data.train[i].sample(), session.tokenizer(), colour) + "\n");
  return 0;
}

int evaluate_only(Session& session) {
  const TrainOptions& o = session.options();
  const std::optional<data::SampleSet> samples = load_eval_data(o, session.style(), session.tokenizer());
  auto params = graph::Parameters::load(session.reader(), session.parameter_options(), session.pool());
  if (!o.adapter_path.empty()) load_adapter(o.adapter_path, *params, session.pool());
  if (samples) {
    const EvalResult r = evaluate(session, *params, *samples);
    if (o.json) {
      Json json = Json::object();
      json.set("eval_loss", r.loss);
      json.set("perplexity", r.perplexity());
      json.set("tokens", r.tokens);
      session.print(json.dump() + "\n");
    } else {
      char text[128];
      std::snprintf(text, sizeof text, "eval_loss %.6f\nperplexity %.4f\ntokens %lld\n", r.loss, r.perplexity(),
                    static_cast<long long>(r.tokens));
      session.print(text);
    }
  }
  if (!o.sample_prompts.empty()) print_samples(session, *params);
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
