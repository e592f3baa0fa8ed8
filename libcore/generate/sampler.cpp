#include "generate/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "base/error.h"
#include "kernels/math.h"
#include "kernels/rows.h"

namespace loongforge::generate {
namespace {

constexpr double kOut = -std::numeric_limits<double>::infinity();

// In place: what is smaller than the k-th largest goes.
void keep_top_k(int64_t k, std::vector<double>* scores) {
  if (k <= 0 || k >= static_cast<int64_t>(scores->size())) return;
  std::vector<double> sorted = *scores;
  std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<>());
  const double smallest = sorted[static_cast<size_t>(k - 1)];
  for (double& s : *scores)
    if (s < smallest) s = kOut;
}

std::vector<double> weights_of(const std::vector<double>& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> weights(scores.size());
  for (size_t i = 0; i < scores.size(); ++i)
    weights[i] = scores[i] == kOut ? 0.0 : kernels::det_exp(scores[i] - largest);
  return weights;
}

// From the smallest up, of equal ones the lower id first, those go whose sum stays within 1 - p.
// The largest stays.
void keep_top_p(double p, std::vector<double>* weights) {
  if (p >= 1) return;
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < weights->size(); ++i)
    if ((*weights)[i] > 0) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return (*weights)[a] != (*weights)[b] ? (*weights)[a] < (*weights)[b] : a < b;
  });
  double total = 0;
  for (uint32_t i : order) total += (*weights)[i];
  double sum = 0;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    sum += (*weights)[order[i]];
    if (sum > (1 - p) * total) return;
    (*weights)[order[i]] = 0;
  }
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options) : options_(options), random_(options.seed) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature))
    throw_usage("--sample_temperature must not be negative");
  if (options.top_k < 0) throw_usage("--sample_top_k must not be negative");
  if (!(options.top_p > 0 && options.top_p <= 1)) throw_usage("--sample_top_p must be in (0, 1]");
}

std::vector<double> Sampler::probabilities(std::span<const float> logits) const {
  std::vector<double> scores(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!std::isfinite(logits[i]))
      throw_failed("", "the logit of token " + std::to_string(i) + " is not finite",
                   "the model's weights are damaged");
    scores[i] = static_cast<double>(logits[i]) / options_.temperature;
  }
  // A temperature so small that it overflows means the largest logit.
  if (!std::all_of(scores.begin(), scores.end(), [](double s) { return std::isfinite(s); })) {
    const float largest = *std::max_element(logits.begin(), logits.end());
    for (size_t i = 0; i < logits.size(); ++i) scores[i] = logits[i] == largest ? 0.0 : kOut;
  }
  keep_top_k(options_.top_k, &scores);
  std::vector<double> weights = weights_of(scores);
  keep_top_p(options_.top_p, &weights);
  double total = 0;
  for (double w : weights) total += w;
  for (double& w : weights) w /= total;
  return weights;
}

int32_t Sampler::choose(std::span<const float> logits, uint64_t prompt, int64_t position) {
  if (options_.temperature == 0)
    return static_cast<int32_t>(
        kernels::argmax(logits.data(), static_cast<int64_t>(logits.size())));
  const std::vector<double> p = probabilities(logits);
  std::array<uint8_t, 8> bytes;
  random_.bytes(support::kStreamSampling, static_cast<uint64_t>(position), prompt * bytes.size(),
                bytes);
  uint64_t bits = 0;
  for (size_t i = 0; i < bytes.size(); ++i) bits |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  const double drawn = std::ldexp(static_cast<double>(bits >> 11), -53);  // [0, 1)
  double sum = 0;
  int32_t last = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) continue;
    last = static_cast<int32_t>(i);
    sum += p[i];
    if (drawn < sum) return last;
  }
  return last;  // the sum rounded to below 1, and the number fell between
}

}  // namespace loongforge::generate
