// Line charts as SVG: panels below each other with one x axis, one legend. Thread-safety: values
// and pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace loongforge::bench {

struct Series {
  std::string name;  // the same name has the same colour in every panel
  std::vector<std::pair<double, double>> points;
};

struct Panel {
  std::string y_label;
  std::vector<Series> series;
};

// Positions of 3 to 8 round numbers within [low, high]. REQUIRES low < high
std::vector<double> round_ticks(double low, double high);

// Curves of more points than a screen shows are thinned out evenly, first and last kept. Points
// that are not finite are left out.
std::string draw_svg(const std::string& title, const std::string& x_label,
                     const std::vector<Panel>& panels);

}  // namespace loongforge::bench
