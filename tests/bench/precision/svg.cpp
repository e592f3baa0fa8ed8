#include "bench/precision/svg.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace loongforge::bench {
namespace {

constexpr double kWidth = 960, kLeft = 70, kRight = 250, kTop = 44, kPanel = 250, kGap = 26,
                 kBottom = 46;
constexpr size_t kMostPoints = 120;

__attribute__((format(printf, 1, 2))) std::string text_of(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

// Seven colours that differ in lightness as well; the next seven series take them dashed.
std::string stroke(size_t index) {
  static const char* const kColours[] = {"#222222", "#d1495b", "#2a6fdb", "#2e933c",
                                         "#e08e0b", "#8b4fc0", "#14919b"};
  constexpr size_t kCount = std::size(kColours);
  std::string text = text_of("stroke=\"%s\"", kColours[index % kCount]);
  if (index >= kCount) text += " stroke-dasharray=\"6 3\"";
  return text;
}

struct Axis {
  double low = 0, high = 1, from = 0, to = 1;  // values and their places
  double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

Axis axis_of(double low, double high, double from, double to) {
  if (!(low < high)) {
    low -= 0.5;
    high = low + 1;
  }
  return {low, high, from, to};
}

std::vector<std::pair<double, double>> thinned(
    const std::vector<std::pair<double, double>>& points) {
  std::vector<std::pair<double, double>> finite, out;
  std::copy_if(points.begin(), points.end(), std::back_inserter(finite),
               [](const auto& p) { return std::isfinite(p.first) && std::isfinite(p.second); });
  if (finite.size() <= kMostPoints) return finite;
  for (size_t i = 0; i < kMostPoints; ++i)
    out.push_back(finite[i * (finite.size() - 1) / (kMostPoints - 1)]);
  return out;
}

std::vector<std::string> names_of(const std::vector<Panel>& panels) {
  std::vector<std::string> names;
  for (const Panel& panel : panels)
    for (const Series& series : panel.series)
      if (std::find(names.begin(), names.end(), series.name) == names.end())
        names.push_back(series.name);
  return names;
}

template <class Get>
std::pair<double, double> range_of(const std::vector<Series>& all, Get get) {
  double low = INFINITY, high = -INFINITY;
  for (const Series& series : all)
    for (const auto& point : series.points) {
      const double v = get(point);
      if (!std::isfinite(v)) continue;
      low = std::min(low, v);
      high = std::max(high, v);
    }
  return low <= high ? std::pair{low, high} : std::pair{0.0, 1.0};
}

std::string draw_panel(const Panel& panel, const Axis& x, double top,
                       const std::vector<std::string>& names) {
  const auto [low, high] = range_of(panel.series, [](const auto& p) { return p.second; });
  const Axis y = axis_of(low - 0.03 * (high - low), high + 0.03 * (high - low), top + kPanel, top);
  std::string out;
  for (const double tick : round_ticks(y.low, y.high)) {
    const bool zero = tick == 0;
    out += text_of("<path d=\"M%.0f %.1fH%.0f\" stroke=\"%s\"/>\n", x.from, y.at(tick), x.to,
                   zero ? "#888" : "#e4e4e4");
    out += text_of("<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", x.from - 6,
                   y.at(tick) + 4, tick);
  }
  out += text_of(
      "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"none\" "
      "stroke=\"#888\"/>\n",
      x.from, top, x.to - x.from, kPanel);
  out += text_of("<text transform=\"translate(18 %.0f) rotate(-90)\" text-anchor=\"middle\">",
                 top + kPanel / 2) +
         escaped(panel.y_label) + "</text>\n";
  for (const Series& series : panel.series) {
    const auto index =
        static_cast<size_t>(std::find(names.begin(), names.end(), series.name) - names.begin());
    out += "<polyline fill=\"none\" stroke-width=\"1.6\" " + stroke(index) + " points=\"";
    for (const auto& [px, py] : thinned(series.points))
      out += text_of("%.1f,%.1f ", x.at(px), y.at(py));
    out += "\"/>\n";
  }
  return out;
}

}  // namespace

std::vector<double> round_ticks(double low, double high) {
  const double rough = (high - low) / 5, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double candidate : {1.0, 2.0, 5.0})
    if (candidate * power >= rough) {
      step = candidate * power;
      break;
    }
  std::vector<double> ticks;
  for (double i = std::ceil(low / step); i * step <= high; ++i)
    ticks.push_back(i == 0 ? 0 : i * step);
  return ticks;
}

std::string draw_svg(const std::string& title, const std::string& x_label,
                     const std::vector<Panel>& panels) {
  const auto count = static_cast<double>(panels.size());
  const double bottom = kTop + count * kPanel + (count - 1) * kGap, height = bottom + kBottom;
  std::vector<Series> all;
  for (const Panel& panel : panels) all.insert(all.end(), panel.series.begin(), panel.series.end());
  const auto [low, high] = range_of(all, [](const auto& p) { return p.first; });
  const Axis x = axis_of(low, high, kLeft, kWidth - kRight);
  const std::vector<std::string> names = names_of(panels);
  std::string out = text_of(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n",
      kWidth, height);
  out += "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  out +=
      text_of("<text x=\"%.0f\" y=\"26\" font-size=\"16\">", kLeft) + escaped(title) + "</text>\n";
  for (const double tick : round_ticks(x.low, x.high))
    out += text_of("<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%g</text>\n", x.at(tick),
                   bottom + 17, tick);
  out += text_of("<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">", (x.from + x.to) / 2,
                 bottom + 36) +
         escaped(x_label) + "</text>\n";
  for (size_t i = 0; i < panels.size(); ++i)
    out += draw_panel(panels[i], x, kTop + static_cast<double>(i) * (kPanel + kGap), names);
  for (size_t i = 0; i < names.size(); ++i) {
    const double at = kTop + 10 + 20 * static_cast<double>(i);
    out += text_of("<path d=\"M%.0f %.0fh26\" stroke-width=\"2.4\" %s/>", x.to + 16, at,
                   stroke(i).c_str());
    out += text_of("<text x=\"%.0f\" y=\"%.0f\">", x.to + 48, at + 4) + escaped(names[i]) +
           "</text>\n";
  }
  return out + "</svg>\n";
}

}  // namespace loongforge::bench
