#include "train/dry_run.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "graph/precision_report.h"
#include "support/counted.h"
#include "train/fit_advice.h"
#include "train/training_run.h"

namespace loongforge::train {
namespace {

using support::counted;
using support::Json;

constexpr double kProbeSeconds = 10;

struct Plan {
  int64_t parameters = 0, trainable = 0;
  RunShape shape;
  MemoryForecast memory;
  uint64_t available = 0;
  std::vector<FittingFlags> would_fit;  // filled where it does not fit
  std::optional<ProbeResult> probe;

  bool fits() const { return memory.total() <= available; }
};

std::string mb(uint64_t bytes) {
  char text[48];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

std::string row(const char* name, uint64_t bytes) {
  char text[96];
  std::snprintf(text, sizeof text, "  %-34s %10.1f MB\n", name, static_cast<double>(bytes) / 1e6);
  return text;
}

Json probe_json(const ProbeResult& p) {
  Json json = Json::object();
  json.set("steps", p.steps);
  json.set("micro_batches", p.micro_batches);
  json.set("tokens", p.tokens);
  json.set("extrapolated", p.extrapolated);
  json.set("seconds", p.seconds);
  json.set("tokens_per_s", p.tokens_per_s);
  json.set("step_ms", p.step_ms);
  json.set("eta_s", p.eta_s);
  json.set("peak_bytes", static_cast<int64_t>(p.peak_bytes));
  json.set("largest_micro_batch_run", p.largest_met);
  return json;
}

std::string as_json(const Plan& plan, const TrainingData& data) {
  Json json = Json::object();
  json.set("parameters", plan.parameters);
  json.set("trainable", plan.trainable);
  if (!data.stream) {
    json.set("samples", static_cast<int64_t>(data.train.size()));
    json.set("tokens", data.tokens);
    json.set("trained_tokens", data.trained_tokens);
  }
  json.set("rows_per_step", plan.shape.rows_per_step);
  json.set("steps", plan.shape.plan.total_steps());
  json.set("longest_micro_batch_tokens", plan.shape.longest_micro_batch);
  Json memory = Json::object();
  const MemoryForecast& m = plan.memory;
  for (auto [name, bytes] : {std::pair<const char*, uint64_t>{"process", m.process},
                             {"weights", m.weights},
                             {"optimizer", m.optimizer},
                             {"gradients", m.gradients},
                             {"activations", m.activations},
                             {"scratch", m.scratch},
                             {"peak", m.total()}})
    memory.set(name, static_cast<int64_t>(bytes));
  json.set("memory_bytes", std::move(memory));
  json.set("available_bytes", static_cast<int64_t>(plan.available));
  json.set("fits", plan.fits());
  if (!plan.fits()) {
    Json list = Json::array();
    for (const FittingFlags& f : plan.would_fit) {
      Json entry = Json::object();
      entry.set("flags", f.flags);
      entry.set("peak_bytes", static_cast<int64_t>(f.forecast.total()));
      entry.set("fits", f.fits);
      list.push_back(std::move(entry));
    }
    json.set("would_fit", std::move(list));
  }
  if (plan.probe) json.set("probe", probe_json(*plan.probe));
  return json.dump() + "\n";
}

std::string advice_text(const Plan& plan) {
  std::string text = "does not fit: " + mb(plan.available) + " can be had here\n";
  for (const FittingFlags& f : plan.would_fit)
    text += (f.fits ? "  would fit: " : "  not even with: ") + f.flags + " (" +
            mb(f.forecast.total()) + ")\n";
  return text;
}

std::string probe_text(const ProbeResult& p, const Plan& plan) {
  const long long s = static_cast<long long>(p.eta_s + 0.5);
  std::string what = counted(p.steps, "step");
  if (p.micro_batches > 0)
    what = std::to_string(p.micro_batches) + " of " +
           counted(plan.shape.micro_batches_per_step, "micro-batch") + " of a step";
  else if (p.extrapolated)
    what = std::to_string(p.tokens) + " of about " + std::to_string(p.micro_batch_tokens) +
           " tokens of a micro-batch";
  char text[400];
  std::snprintf(text, sizeof text,
                "speed           %.1f tokens/s, %s%.1f ms a step%s\n"
                "time to the end %02lld:%02lld:%02lld, without evaluations and checkpoints\n"
                "peak memory     %s measured%s, %s forecast\n",
                p.tokens_per_s, p.extrapolated ? "about " : "", p.step_ms,
                p.extrapolated ? " (extrapolated)" : "", s / 3600, s / 60 % 60, s % 60,
                mb(p.peak_bytes).c_str(), p.largest_met ? "" : " without the largest micro-batch",
                mb(plan.memory.total()).c_str());
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, " in %.1f s\n", p.seconds);
  return "probe           " + what + seconds + text;
}

std::string as_text(const Plan& plan, const TrainingData& data) {
  const MemoryForecast& m = plan.memory;
  const double share =
      100.0 * static_cast<double>(plan.trainable) / static_cast<double>(plan.parameters);
  char head[512], samples[128];
  std::snprintf(samples, sizeof samples, "%zu, %lld tokens, %lld trained on", data.train.size(),
                static_cast<long long>(data.tokens), static_cast<long long>(data.trained_tokens));
  std::snprintf(
      head, sizeof head,
      "parameters      %lld, trainable %lld (%.3f %%)\nsamples         %s\n"
      "steps           %lld of %lld rows; largest micro-batch %lld tokens\npeak memory     %.1f "
      "MB\n",
      static_cast<long long>(plan.parameters), static_cast<long long>(plan.trainable), share,
      data.stream ? "streamed" : samples, static_cast<long long>(plan.shape.plan.total_steps()),
      static_cast<long long>(plan.shape.rows_per_step),
      static_cast<long long>(plan.shape.longest_micro_batch), static_cast<double>(m.total()) / 1e6);
  std::string text = head + row("program, tokenizer, samples", m.process) +
                     row("weights and adapters", m.weights) + row("optimizer", m.optimizer) +
                     row("gradients", m.gradients) + row("activations", m.activations) +
                     row("scratch", m.scratch);
  if (!plan.fits()) text += advice_text(plan);
  if (plan.probe) text += probe_text(*plan.probe, plan);
  return text;
}

int show_precision(Session& session, const graph::Parameters& params) {
  const std::vector<graph::PrecisionRow> rows =
      graph::precision_rows(params, session.reader().model());
  if (!session.options().json) {
    std::string recipe = session.recipe_text(params);  // a clause a line
    for (size_t at = recipe.find("; "); at != std::string::npos; at = recipe.find("; ", at))
      recipe.replace(at, 2, ";\n    ");
    session.print(recipe + "\n" + graph::precision_table(rows));
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
  json.set("recipe", session.recipe_text(params));
  json.set("tensors", std::move(list));
  session.print(json.dump() + "\n");
  return 0;
}

}  // namespace

int dry_run(Session& session, const TrainingData& data, uint64_t available) {
  const TrainOptions& o = session.options();
  Plan plan{0, 0, shape_of(o, data), {}, 0, {}, {}};
  {
    auto params =
        graph::Parameters::declare(session.reader(), session.parameter_options(), session.pool());
    session.log_notes(*params);
    session.warn_of_length(
        std::max(plan.shape.longest_document, data.eval ? data.eval->longest() : 0),
        data.stream != nullptr);
    if (o.show_precision) return show_precision(session, *params);
    plan.memory = forecast_memory(session, plan.shape, *params);
    if (data.stream)  // its window, at most
      plan.memory.process += static_cast<uint64_t>(o.buffer_size) *
                             data::sample_words(static_cast<uint64_t>(o.cutoff_len)) *
                             sizeof(int32_t);
    plan.parameters = params->parameter_count();
    plan.trainable = params->trainable_count();
  }
  plan.available = available;
  if (!plan.fits())
    plan.would_fit = flags_that_fit(session, data, plan.memory.process, plan.available);
  else if (o.probe)
    plan.probe = TrainingRun(session, data).probe(kProbeSeconds);
  session.print(o.json ? as_json(plan, data) : as_text(plan, data));
  return 0;
}

}  // namespace loongforge::train
