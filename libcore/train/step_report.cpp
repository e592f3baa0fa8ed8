#include "train/step_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/log.h"
#include "support/counted.h"

namespace loongforge::train {
namespace {

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string clock_text(double seconds) {
  const int64_t s = static_cast<int64_t>(std::max(0.0, seconds) + 0.5);
  char text[32];
  if (s < 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld", static_cast<long long>(s / 60),
                  static_cast<long long>(s % 60));
  else
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", static_cast<long long>(s / 3600),
                  static_cast<long long>(s / 60 % 60), static_cast<long long>(s % 60));
  return text;
}

// JSON has no NaN: a skipped step's figures are null.
support::Json number(double value) {
  return std::isfinite(value) ? support::Json(value) : support::Json();
}

}  // namespace

support::Json step_json(const StepFacts& f) {
  support::Json json = support::Json::object();
  json.set("event", "step");
  json.set("step", f.step);
  json.set("total_steps", f.total_steps);
  json.set("epoch", number(f.epoch));
  json.set("loss", number(f.loss));
  json.set("lr", number(f.lr));
  json.set("grad_norm", number(f.grad_norm));
  json.set("tokens_per_s", number(std::round(f.tokens_per_s * 10) / 10));
  json.set("step_ms", number(std::round(f.step_ms * 10) / 10));
  json.set("mem_mb", f.mem_mb);
  json.set("fp8_overflow", number(f.fp8_overflow));
  if (f.fp8_headroom) {
    json.set("fp8_underflow", number(f.fp8_underflow));
    json.set("fp8_headroom", number(*f.fp8_headroom));
  }
  if (f.saturated_gradients > 0) json.set("fp8_saturated_gradients", f.saturated_gradients);
  if (!f.fp8_tensors.is_null()) json.set("fp8_tensors", f.fp8_tensors);
  json.set("eta_s", number(std::round(f.eta_s)));
  if (f.skipped) json.set("skipped", true);
  return json;
}

// Within 80 columns where nothing is amiss, within 100 where something is; the epoch is in the JSON
// form, and so is what a saturated step leaves out: its memory and the share that its count of
// elements stands for.
std::string step_text(const StepFacts& f) {
  const bool saturated = f.saturated_gradients > 0;
  std::string text = "step " + std::to_string(f.step) + "/" + std::to_string(f.total_steps) +
                     "  loss " + format("%.4f", f.loss) + "  lr " + format("%.1e", f.lr) +
                     "  norm " + format("%.3f", f.grad_norm) + "  " +
                     format("%.0f", f.tokens_per_s) + " tok/s";
  if (!saturated) text += "  " + std::to_string(f.mem_mb) + " MB";
  text += "  ETA " + clock_text(f.eta_s);
  if (f.fp8_overflow > 0 && !saturated) text += "  overflow " + format("%.1e", f.fp8_overflow);
  if (saturated)
    text += (f.clips ? "  CLIPPED: " : "  NOT CLIPPED: ") + std::to_string(f.saturated_gradients);
  if (f.skipped) text += "  SKIPPED: not finite";
  return text;
}

support::Json eval_json(const EvalFacts& f) {
  support::Json json = support::Json::object();
  json.set("event", "eval");
  json.set("step", f.step);
  json.set("epoch", f.epoch);
  json.set("eval_loss", number(f.loss));
  json.set("perplexity", number(f.perplexity));
  json.set("tokens", f.tokens);
  return json;
}

std::string eval_text(const EvalFacts& f) {
  return "step " + std::to_string(f.step) + "  eval_loss " + format("%.4f", f.loss) +
         "  perplexity " + format("%.3f", f.perplexity);
}

support::Json step_history(const StepFacts& f) {
  support::Json entry = support::Json::object();
  entry.set("epoch", f.epoch);
  entry.set("grad_norm", number(f.grad_norm));
  entry.set("learning_rate", f.lr);
  entry.set("loss", number(f.loss));
  entry.set("step", f.step);
  return entry;
}

support::Json eval_history(const EvalFacts& f) {
  support::Json entry = support::Json::object();
  entry.set("epoch", f.epoch);
  entry.set("eval_loss", number(f.loss));
  entry.set("step", f.step);
  return entry;
}

void OverflowReporter::add(int64_t step, const std::map<std::string, int64_t>& by_layer) {
  for (const auto& [layer, count] : by_layer) pending_[layer] += count;
  if (pending_.empty() || step - last_report_ < kInterval) return;
  auto worst = std::max_element(pending_.begin(), pending_.end(),
                                [](const auto& a, const auto& b) { return a.second < b.second; });
  int64_t total = 0;
  for (const auto& [layer, count] : pending_) total += count;
  std::string text = "FP8 overflow detected in layer." + worst->first + ": " +
                     support::counted(worst->second, "element");
  if (pending_.size() > 1)
    text += " (" + std::to_string(total) + " in " + std::to_string(pending_.size()) + " layers)";
  text += " up to step " + std::to_string(step) + "; a larger --fp8_scale_factor widens the range";
  const LogLevel level = level_ == OverflowLogLevel::kDebug     ? LogLevel::kDebug
                         : level_ == OverflowLogLevel::kWarning ? LogLevel::kWarning
                                                                : LogLevel::kError;
  log(level, text);
  pending_.clear();
  last_report_ = step;
}

}  // namespace loongforge::train
