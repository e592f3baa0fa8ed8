// The first moments of a run, measured: whole steps where they fit into the time, else
// micro-batches of one, else a part of one.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "train/training_run.h"

namespace loongforge::train {
namespace {

struct TimeIsUp {};  // between two micro-batches

// Two steps end, the first of which is warmer than none: until then a second one may take this much
// longer.
constexpr double kSecondStep = 1.5;
constexpr int64_t kFirstTokens = 64, kGrowth = 4;

// Tokens as a run's: in documents of its length, the same share of them learnt.
graph::Batch made_batch(int64_t tokens, int64_t document, double learnt) {
  graph::Batch b;
  for (int64_t row = 0; row < tokens; row += document)
    b.documents.push_back({row, std::min(document, tokens - row)});
  for (int64_t t = 0; t < tokens; ++t) {
    const bool target = std::floor(static_cast<double>(t + 1) * learnt) >
                        std::floor(static_cast<double>(t) * learnt);
    b.ids.push_back(static_cast<int32_t>(t % 64) * 2);
    b.targets.push_back(target ? static_cast<int32_t>(t % 61) * 2 : -1);
    b.positions.push_back(static_cast<int32_t>(t % document));
    b.valid += target;
  }
  return b;
}

}  // namespace

void TrainingRun::run_alone(const graph::Batch& batch) {
  engine_->step(
      1, [&](int64_t) -> const graph::Batch& { return batch; },
      [](int64_t) -> const graph::MaskSource* { return nullptr; }, nullptr);
}

// Tokens of a step and of a micro-batch, on average.
double TrainingRun::tokens_per_step() const {
  const double steps = static_cast<double>(shape_.plan.total_steps());
  if (data_.stream) return static_cast<double>(shape_.rows_per_step * options_.cutoff_len);
  return static_cast<double>(data_.tokens) * shape_.plan.epoch_of(shape_.plan.total_steps()) /
         std::max(1.0, steps);
}

// Grows a made batch until it is clear whether a micro-batch of the run fits into the time. What it
// took where not; empty where it does.
std::optional<ProbeResult> TrainingRun::probe_part(double seconds, const Stopwatch& watch) {
  const double micro_batches = static_cast<double>(shape_.micro_batches_per_step);
  const auto whole = std::max<int64_t>(1, static_cast<int64_t>(tokens_per_step() / micro_batches));
  const double rows = std::min(static_cast<double>(options_.per_device_train_batch_size),
                               static_cast<double>(shape_.rows_per_step));
  const auto document = std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(whole) / rows),
                                            1, shape_.longest_document);
  const double learnt = data_.tokens > 0 ? static_cast<double>(data_.trained_tokens) /
                                               static_cast<double>(data_.tokens)
                                         : 1.0;
  run_alone(made_batch(std::min(whole, kFirstTokens), document,
                       learnt));  // finds cold caches and new pages
  for (int64_t n = std::min(whole, kFirstTokens);; n = std::min(whole, n * kGrowth)) {
    const Stopwatch own;
    run_alone(made_batch(n, document, learnt));
    const double took = own.seconds(), left = seconds - watch.seconds(),
                 a_token = took / static_cast<double>(n);
    if (a_token * static_cast<double>(whole) <= left) return {};
    if (n < whole && a_token * static_cast<double>(std::min(whole, n * kGrowth)) <= left / 2)
      continue;
    ProbeResult result;
    result.extrapolated = true;
    result.tokens = n;
    result.micro_batch_tokens = whole;
    result.seconds = took;
    return result;
  }
}

// Steps until the time is up, and of what was begun then its micro-batches.
ProbeResult TrainingRun::probe_steps(double seconds, const Stopwatch& watch) {
  std::vector<double> times, tokens;  // of whole steps
  std::vector<std::pair<double, double>>
      micro;  // of the step that runs: tokens and seconds since its start, after each
  Stopwatch of_step;
  between_micro_batches_ = [&](int64_t done) {
    if (done == 0) return;
    micro.emplace_back(static_cast<double>(done), of_step.seconds());
    if (watch.seconds() >= seconds * (times.empty() ? 1 : kSecondStep)) throw TimeIsUp{};
  };
  try {
    do {
      const int64_t before = state_.tokens_seen;
      micro.clear();
      of_step.restart();
      times.push_back(step().step_ms / 1000);
      tokens.push_back(static_cast<double>(state_.tokens_seen - before));
    } while (watch.seconds() < seconds && state_.step < shape_.plan.total_steps());
  } catch (const TimeIsUp&) {
  }
  between_micro_batches_ = nullptr;
  ProbeResult result;
  if (times.empty()) {
    const auto [tokens0, seconds0] = micro.size() > 1 ? micro.front() : std::pair(0.0, 0.0);
    result.extrapolated = true;
    result.micro_batches = static_cast<int64_t>(micro.size()) - (micro.size() > 1 ? 1 : 0);
    result.tokens = static_cast<int64_t>(micro.back().first - tokens0);
    result.seconds = micro.back().second - seconds0;
    return result;
  }
  // The first step finds cold caches and new pages: it counts where there is no other.
  const size_t first = times.size() > 1 ? 1 : 0;
  result.steps = static_cast<int64_t>(times.size() - first);
  for (size_t i = first; i < times.size(); ++i) {
    result.seconds += times[i];
    result.tokens += static_cast<int64_t>(tokens[i]);
  }
  return result;
}

ProbeResult TrainingRun::probe(double seconds) {
  log_info("probing for at most about " + std::to_string(static_cast<int>(std::ceil(seconds))) +
           " seconds");
  reset_peak_memory();
  prepare_weights();
  const Stopwatch watch;
  std::optional<ProbeResult> part = probe_part(seconds, watch);
  ProbeResult result = part ? *part : probe_steps(seconds, watch);
  result.tokens_per_s = static_cast<double>(result.tokens) / result.seconds;
  result.step_ms = 1000 * (result.steps > 0 ? result.seconds / static_cast<double>(result.steps)
                                            : tokens_per_step() / result.tokens_per_s);
  const double total = static_cast<double>(shape_.plan.total_steps());
  // By tokens where they are known: lengths differ from step to step.
  result.eta_s = data_.stream
                     ? total * result.step_ms / 1000
                     : static_cast<double>(data_.tokens) *
                           shape_.plan.epoch_of(shape_.plan.total_steps()) / result.tokens_per_s;
  // These steps need not have met the largest micro-batch; a stream does not know it.
  result.largest_met = false;
  if (!shape_.largest_rows.empty() &&
      static_cast<double>(shape_.longest_micro_batch) / result.tokens_per_s <= seconds) {
    std::vector<Row> rows;
    for (uint32_t r : shape_.largest_rows) rows.push_back(shape_.rows[r]);
    run_alone(collate(data_.train, rows));
    result.largest_met = true;
  }
  result.peak_bytes = process_memory().peak_resident;
  return result;
}

}  // namespace loongforge::train
