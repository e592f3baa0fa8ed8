#include "train/trainer.h"

#include <cmath>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "graph/precision_report.h"
#include "train/adapter_io.h"
#include "train/evaluate.h"
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

std::string row(const char* name, uint64_t bytes) {
  char text[96];
  std::snprintf(text, sizeof text, "  %-34s %10.1f MB\n", name, static_cast<double>(bytes) / 1e6);
  return text;
}

int show_precision(Session& session, const graph::Parameters& params) {
  const std::vector<graph::PrecisionRow> rows = graph::precision_rows(params, session.reader().model());
  if (!session.options().json) {
    session.print(session.recipe().describe() + "\n" + graph::precision_table(rows));
    return 0;
  }
  Json list = Json::array();
  for (const graph::PrecisionRow& r : rows) {
    Json row = Json::object();
    row.set("tensor", r.tensor);
    row.set("role", r.role);
    row.set("shape", r.shape);
    row.set("file", r.stored);
    row.set("runs_as", r.weight);
    row.set("inputs", r.inputs);
    row.set("gradients", r.gradients);
    row.set("why", r.reason);
    list.push_back(std::move(row));
  }
  Json json = Json::object();
  json.set("recipe", session.recipe().describe());
  json.set("tensors", std::move(list));
  session.print(json.dump() + "\n");
  return 0;
}

int dry_run(Session& session) {
  const TrainingData data = load_data(session);
  const RunShape shape = data.stream ? shape_stream(session.options()) : shape_run(session.options(), data.train);
  auto params = graph::Parameters::declare(session.reader(), session.parameter_options(), session.pool());
  if (session.options().show_precision) return show_precision(session, *params);
  MemoryForecast m = forecast_memory(session, shape, *params);
  if (data.stream)  // its window, at most
    m.process += static_cast<uint64_t>(session.options().buffer_size) *
                 data::sample_words(static_cast<uint64_t>(session.options().cutoff_len)) * sizeof(int32_t);
  if (params->decoded_weights() > 0) log_info(params->decoded_note());
  const double share = 100.0 * static_cast<double>(params->trainable_count()) / static_cast<double>(params->parameter_count());
  if (session.options().json) {
    Json json = Json::object();
    json.set("parameters", params->parameter_count());
    json.set("trainable", params->trainable_count());
    if (!data.stream) {
      json.set("samples", static_cast<int64_t>(data.train.size()));
      json.set("tokens", data.tokens);
      json.set("trained_tokens", data.trained_tokens);
    }
    json.set("rows_per_step", shape.rows_per_step);
    json.set("steps", shape.plan.total_steps());
    json.set("longest_micro_batch_tokens", shape.longest_micro_batch);
    Json memory = Json::object();
    for (auto [name, bytes] : {std::pair<const char*, uint64_t>{"process", m.process},
                               {"weights", m.weights},
                               {"optimizer", m.optimizer},
                               {"gradients", m.gradients},
                               {"activations", m.activations},
                               {"scratch", m.scratch},
                               {"peak", m.total()}})
      memory.set(name, static_cast<int64_t>(bytes));
    json.set("memory_bytes", std::move(memory));
    session.print(json.dump() + "\n");
    return 0;
  }
  char head[512], samples[128];
  std::snprintf(samples, sizeof samples, "%zu, %lld tokens, %lld trained on", data.train.size(),
                static_cast<long long>(data.tokens), static_cast<long long>(data.trained_tokens));
  std::snprintf(head, sizeof head,
                "parameters      %lld, trainable %lld (%.3f %%)\nsamples         %s\n"
                "steps           %lld of %lld rows; largest micro-batch %lld tokens\npeak memory     %.1f MB\n",
                static_cast<long long>(params->parameter_count()), static_cast<long long>(params->trainable_count()), share,
                data.stream ? "streamed" : samples, static_cast<long long>(shape.plan.total_steps()),
                static_cast<long long>(shape.rows_per_step), static_cast<long long>(shape.longest_micro_batch),
                static_cast<double>(m.total()) / 1e6);
  session.print(head + row("program, tokenizer, samples", m.process) + row("weights and adapters", m.weights) +
                row("optimizer", m.optimizer) + row("gradients", m.gradients) + row("activations", m.activations) +
                row("scratch", m.scratch));
  return 0;
}

}  // namespace

int run_training(const TrainOptions& options, const Output& output) {
  Session session(options, output);
  if (options.preview > 0) return preview_samples(session, output.colour);
  if (options.dry_run) return dry_run(session);
  if (options.eval_only) return evaluate_only(session);
  const TrainingData data = load_data(session);
  return TrainingRun(session, data).run();
}

}  // namespace loongforge::train
