#include "bench/precision/curves.h"

#include <utility>

#include "bench/precision/svg.h"

namespace loongforge::bench {
namespace {

Series mean_series(const std::string& name, const std::vector<std::vector<double>>& curves) {
  Series series{name, {}};
  for (size_t i = 0; i < curves[0].size(); ++i) {
    double sum = 0;
    for (const std::vector<double>& curve : curves) sum += curve[i];
    series.points.emplace_back(static_cast<double>(i + 1),
                               sum / static_cast<double>(curves.size()));
  }
  return series;
}

}  // namespace

std::string draw_curves(const Part& part, const Records& records) {
  Panel losses{"loss, mean of the last " + std::to_string(kWindow) + " steps", {}};
  Panel gaps{"against bf16, %", {}};
  const auto baselines = records.find(kBaseline);
  for (const Recipe& recipe : part.recipes) {
    const auto runs = records.find(recipe.name);
    if (runs == records.end() || runs->second.empty()) continue;
    std::vector<std::vector<double>> smooth, gap;
    for (const auto& [seed, run] : runs->second) {
      smooth.push_back(trailing_mean(run.loss, kWindow));
      if (baselines == records.end() || !baselines->second.contains(seed)) continue;
      const std::vector<double> base = trailing_mean(baselines->second.at(seed).loss, kWindow);
      gap.push_back(smooth.back());
      for (size_t i = 0; i < base.size(); ++i) gap.back()[i] = percent(gap.back()[i], base[i]);
    }
    losses.series.push_back(mean_series(recipe.title, smooth));
    if (!gap.empty()) gaps.series.push_back(mean_series(recipe.title, gap));
  }
  return draw_svg(part.title + ": loss by recipe", "step of 4 x 256 tokens (mean over the seeds)",
                  {losses, gaps});
}

}  // namespace loongforge::bench
