#include "bench/precision/table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace loongforge::bench {
namespace {

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string loss_text(const Spread& s) { return number("%.4f", s.mean); }

// mean (lowest to highest)
std::string gap_text(const Spread& s) {
  if (s.count == 0) return "";
  std::string text = number("%+.3f", s.mean);
  if (s.count > 1) text += " (" + number("%+.2f", s.low) + " to " + number("%+.2f", s.high) + ")";
  return text;
}

std::string row_text(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += (cell.empty() ? " " : " " + cell + " ") + "|";
  return text + "\n";
}

std::string head_text(const std::vector<std::string>& cells) {
  std::string text = row_text(cells) + "|";
  for (size_t i = 0; i < cells.size(); ++i) text += "---|";
  return text + "\n";
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  Spread s;
  if (values.empty()) return s;
  s.count = static_cast<int64_t>(values.size());
  s.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(s.count);
  s.low = *std::min_element(values.begin(), values.end());
  s.high = *std::max_element(values.begin(), values.end());
  return s;
}

double mean_of_last(const std::vector<double>& values, int64_t count) {
  const int64_t size = static_cast<int64_t>(values.size()), used = std::min(size, count);
  return std::accumulate(values.end() - used, values.end(), 0.0) / static_cast<double>(used);
}

std::vector<double> trailing_mean(const std::vector<double>& values, int64_t window) {
  std::vector<double> means;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t from =
        i + 1 > static_cast<size_t>(window) ? i + 1 - static_cast<size_t>(window) : 0;
    means.push_back(std::accumulate(values.begin() + static_cast<ptrdiff_t>(from),
                                    values.begin() + static_cast<ptrdiff_t>(i + 1), 0.0) /
                    static_cast<double>(i + 1 - from));
  }
  return means;
}

double percent(double a, double b) { return 100 * (a / b - 1); }

double mean_deviation(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(percent(a[i], b[i]));
  return sum / static_cast<double>(a.size());
}

std::optional<int64_t> steps_to(const std::vector<double>& loss, double level) {
  const std::vector<double> means = trailing_mean(loss, kWindow);
  for (size_t i = 0; i < means.size(); ++i)
    if (means[i] <= level) return static_cast<int64_t>(i) + 1;
  return std::nullopt;
}

double level_of(const RunRecord& baseline) {
  const std::vector<double> means = trailing_mean(baseline.loss, kWindow);
  return means[std::max<size_t>(1, means.size() * 3 / 4) - 1];
}

std::vector<Row> compare(const Part& part, const Records& records) {
  static const std::map<int64_t, RunRecord> kNone;
  const auto of = [&](const std::string& recipe) -> const std::map<int64_t, RunRecord>& {
    const auto at = records.find(recipe);
    return at == records.end() ? kNone : at->second;
  };
  const std::map<int64_t, RunRecord>& baselines = of(kBaseline);
  std::vector<Row> rows;
  for (const Recipe& recipe : part.recipes) {
    const std::map<int64_t, RunRecord>& runs = of(recipe.name);
    if (runs.empty()) continue;
    Row row;
    row.recipe = recipe.name;
    row.title = recipe.title;
    row.runs = static_cast<int64_t>(runs.size());
    std::vector<double> last, window, before, after, gaps, eval_gaps, deviations, reached;
    for (const auto& [seed, run] : runs) {
      last.push_back(run.loss.back());
      window.push_back(mean_of_last(run.loss, kWindow));
      before.push_back(run.eval_before);
      after.push_back(run.eval_after);
      row.memory_mb = std::max(row.memory_mb, run.memory_mb);
      const auto pair = baselines.find(seed);
      if (pair == baselines.end()) continue;
      const RunRecord& base = pair->second;
      gaps.push_back(row.gaps[seed] = percent(window.back(), mean_of_last(base.loss, kWindow)));
      eval_gaps.push_back(row.eval_gaps[seed] = percent(run.eval_after, base.eval_after));
      deviations.push_back(mean_deviation(run.grad_norm, base.grad_norm));
      if (const auto steps = steps_to(run.loss, level_of(base)))
        reached.push_back(static_cast<double>(*steps));
    }
    row.last = spread_of(last);
    row.window = spread_of(window);
    row.eval_before = spread_of(before);
    row.eval_after = spread_of(after);
    row.gap = spread_of(gaps);
    row.eval_gap = spread_of(eval_gaps);
    row.norm_deviation = spread_of(deviations);
    row.steps_to_level = spread_of(reached);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string main_table(const Part& part, const std::vector<Row>& rows, const Speeds& speeds) {
  std::string text = part.title + ", " + std::to_string(part.steps) + " steps\n\n" +
                     head_text({"recipe", "runs", "last loss", "mean of last 20", "gap %",
                                "held out, before", "after", "gap %", "gradient norm off by %",
                                "tokens/s", "steps, s to the loss", "peak MB"});
  for (const Row& row : rows) {
    const bool base = row.recipe == kBaseline;
    const auto speed = speeds.find(row.recipe);
    const bool timed = speed != speeds.end();
    std::string reach;
    if (row.steps_to_level.count > 0) reach = number("%.0f", row.steps_to_level.mean);
    if (row.steps_to_level.count > 0 && timed)
      reach += ", " + number("%.0f", row.steps_to_level.mean * speed->second.step_ms / 1000);
    if (row.steps_to_level.count < row.gap.count)
      reach += " (" + std::to_string(row.gap.count - row.steps_to_level.count) + " never)";
    text += row_text(
        {row.title, std::to_string(row.runs), loss_text(row.last), loss_text(row.window),
         base ? "" : gap_text(row.gap), loss_text(row.eval_before), loss_text(row.eval_after),
         base ? "" : gap_text(row.eval_gap),
         base || row.norm_deviation.count == 0 ? "" : number("%.2f", row.norm_deviation.mean),
         timed ? number("%.0f", speed->second.tokens_per_s) : "", reach,
         number("%.0f", timed ? std::max(row.memory_mb, speed->second.peak_mb) : row.memory_mb)});
  }
  return text;
}

std::string seed_table(const std::vector<Row>& rows) {
  std::vector<int64_t> seeds;
  for (const Row& row : rows)
    for (const auto& [seed, gap] : row.gaps) seeds.push_back(seed);
  std::sort(seeds.begin(), seeds.end());
  seeds.erase(std::unique(seeds.begin(), seeds.end()), seeds.end());
  std::vector<std::string> head = {"gap %, last 20 / held out"};
  for (const int64_t seed : seeds) head.push_back("seed " + std::to_string(seed));
  std::string text = head_text(head);
  for (const Row& row : rows) {
    if (row.recipe == kBaseline) continue;
    std::vector<std::string> cells = {row.title};
    for (const int64_t seed : seeds) {
      const auto gap = row.gaps.find(seed);
      cells.push_back(gap == row.gaps.end() ? ""
                                            : number("%+.3f", gap->second) + " / " +
                                                  number("%+.3f", row.eval_gaps.at(seed)));
    }
    text += row_text(cells);
  }
  return text;
}

std::optional<Verdict> judge(const Part& part, const std::vector<Row>& rows, int64_t seeds) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.recipe == part.barred; });
  if (row == rows.end() || row->gap.count < seeds) return std::nullopt;
  const double gap = row->gap.mean;
  const bool kept = gap <= part.bar;  // not where it is no number
  std::string line = part.barred + ": " + number("%+.3f", gap) + " % against bf16, bar " +
                     number("%.2f", part.bar) + " %: ";
  line += !kept             ? "MISSED"
          : gap < -part.bar ? "kept, lower than bf16 by more than the bar"
                            : "kept";
  return Verdict{kept, line};
}

}  // namespace loongforge::bench
