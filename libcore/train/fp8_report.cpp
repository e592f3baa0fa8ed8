#include "train/fp8_report.h"

#include <cmath>

namespace loongforge::train {

void fill_fp8_facts(const quant::StatsMap& stats, StepFacts* facts) {
  int64_t elements = 0, overflow = 0, underflow = 0;
  for (const auto& [name, each] : stats) {
    elements += each.elements;
    overflow += each.counts.overflow;
    underflow += each.counts.zero;
    const double headroom = each.headroom();
    if (std::isfinite(headroom) && (!facts->fp8_headroom || headroom < *facts->fp8_headroom))
      facts->fp8_headroom = headroom;
  }
  facts->saturated_gradients = quant::saturated_gradients(stats);
  if (elements == 0) return;
  facts->fp8_overflow = static_cast<double>(overflow) / static_cast<double>(elements);
  facts->fp8_underflow = static_cast<double>(underflow) / static_cast<double>(elements);
}

std::string recipe_text(const TrainOptions& options) {
  std::string text = options.recipe.flags();
  for (const quant::AmpRule& rule : options.precision_overrides) text += " " + rule.reason;
  if (options.moments != optim::MomentFormat::kF32)
    text += " --moments " + std::string(optim::moment_format_name(options.moments));
  if (options.bf16_masters) text += " --master bf16";
  return text;
}

std::map<std::string, int64_t> saturated_tensors(const quant::StatsMap& stats) {
  std::map<std::string, int64_t> by_tensor;
  for (const auto& [name, each] : stats)
    if (each.counts.overflow > each.planned) by_tensor[name] = each.counts.overflow - each.planned;
  return by_tensor;
}

support::Json fp8_stats_json(const quant::StatsMap& stats) {
  const auto number = [](double value) {
    return std::isfinite(value) ? support::Json(value) : support::Json();
  };
  support::Json json = support::Json::object();
  for (const auto& [name, each] : stats) {
    support::Json one = support::Json::object();
    one.set("format", each.elem == kernels::Elem::kE5M2 ? "e5m2" : "e4m3");
    one.set("overflow", each.overflow_share());
    one.set("underflow", each.underflow_share());
    one.set("headroom", number(each.headroom()));
    one.set("amax", number(static_cast<double>(each.counts.amax)));
    one.set("rel_rms", each.relative_rms());
    one.set("error_std", each.quant_error_std());
    json.set(name, std::move(one));
  }
  return json;
}

}  // namespace loongforge::train
