#include "graph/ops/rope_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "kernels/math.h"

namespace loongforge::graph {
namespace {

using support::Json;

constexpr double kPi = 3.14159265358979323846;

double need(const Json& scaling, const char* key, const std::string& where) {
  const Json* value = scaling.find(key);
  if (value == nullptr || value->is_null())
    throw_bad_data(where, std::string("rope scaling lacks ") + key);
  return value->as_double(key);
}

double positive(const Json& scaling, const char* key, const std::string& where) {
  const double value = need(scaling, key, where);
  if (!(value > 0) || !std::isfinite(value))
    throw_bad_data(where, std::string("rope scaling ") + key + " is not above 0");
  return value;
}

std::string type_of(const Json& scaling) {
  return scaling.is_object()
             ? scaling.get_string("rope_type", scaling.get_string("type", "default"))
             : "default";
}

// theta^(2i/d) in fp32.
std::vector<float> wavelengths(int64_t head_dim, double theta) {
  std::vector<float> out(static_cast<size_t>(head_dim / 2));
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    out[static_cast<size_t>(i)] = static_cast<float>(kernels::det_pow(theta, exponent));
  }
  return out;
}

std::vector<float> inverse(std::vector<float> values) {
  for (float& v : values) v = 1.0f / v;
  return values;
}

// Longer documents than the model was made for turn slower: the base grows with the length.
double dynamic_theta(const Json& scaling, int64_t head_dim, double theta, int64_t longest,
                     const std::string& where) {
  const double factor = positive(scaling, "factor", where),
               made_for = positive(scaling, "max_position_embeddings", where);
  if (head_dim <= 2) throw_bad_data(where, "rope type dynamic needs a head_dim above 2");
  const double length = std::max(static_cast<double>(longest), made_for);
  const double dim = static_cast<double>(head_dim),
               stretch = factor * length / made_for - (factor - 1.0);
  return theta * kernels::det_pow(stretch, dim / (dim - 2.0));
}

// Long wavelengths are stretched by `factor`, short ones kept, those between interpolated.
void scale_llama3(std::vector<float>& inv_freq, const Json& scaling, const std::string& where) {
  const double factor = positive(scaling, "factor", where);
  const double low = positive(scaling, "low_freq_factor", where),
               high = positive(scaling, "high_freq_factor", where);
  const double original = positive(scaling, "original_max_position_embeddings", where);
  if (!(high > low))
    throw_bad_data(where, "rope scaling llama3 needs low_freq_factor < high_freq_factor");
  for (float& f : inv_freq) {
    const double wavelength = 2.0 * kPi / f;
    if (wavelength < original / high) continue;
    if (wavelength > original / low) {
      f = static_cast<float>(f / factor);
      continue;
    }
    const double smooth = (original / wavelength - low) / (high - low);
    f = static_cast<float>((1.0 - smooth) * f / factor + smooth * f);
  }
}

// Dimensions that turn more than beta_fast times over the original length are kept, those that turn
// less than beta_slow times are stretched by `factor`, a linear ramp over the dimensions between.
RopeFrequencies scale_yarn(const std::vector<float>& waves, const Json& scaling, double theta,
                           const std::string& where) {
  const double factor = positive(scaling, "factor", where);
  const double original = positive(scaling, "original_max_position_embeddings", where);
  if (!(theta > 1.0)) throw_bad_data(where, "rope type yarn needs rope_theta above 1");
  const int64_t half = static_cast<int64_t>(waves.size()), dim = 2 * half;
  const auto correction = [&](const char* key, double otherwise) {
    const double turns = scaling.find(key) == nullptr ? otherwise : positive(scaling, key, where);
    return static_cast<double>(dim) * kernels::det_log(original / (turns * 2.0 * kPi)) /
           (2.0 * kernels::det_log(theta));
  };
  double low = correction("beta_fast", 32.0), high = correction("beta_slow", 1.0);
  if (scaling.get_bool("truncate", true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;
  RopeFrequencies out;
  for (int64_t i = 0; i < half; ++i) {
    const float wave = waves[static_cast<size_t>(i)];
    const float ramp = std::clamp(
        (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0f,
        1.0f);
    const float kept = 1.0f / wave, stretched = 1.0f / (static_cast<float>(factor) * wave),
                share = 1.0f - ramp;
    out.inv_freq.push_back(stretched * (1.0f - share) + kept * share);
  }
  const auto mscale = [factor](double m) {
    return factor <= 1.0 ? 1.0 : 0.1 * m * kernels::det_log(factor) + 1.0;
  };
  const double m = scaling.get_double("mscale", 0.0),
               all = scaling.get_double("mscale_all_dim", 0.0);
  const double inferred = m != 0.0 && all != 0.0 ? mscale(m) / mscale(all) : mscale(1.0);
  out.attention_factor = static_cast<float>(scaling.get_double("attention_factor", inferred));
  return out;
}

}  // namespace

bool rope_depends_on_length(const Json& scaling) { return type_of(scaling) == "dynamic"; }

RopeFrequencies rope_frequencies(int64_t head_dim, double theta, const Json& scaling,
                                 int64_t longest, const std::string& where) {
  const std::string type = type_of(scaling);
  if (!(theta > 0)) throw_bad_data(where, "rope theta is not above 0");
  if (type == "dynamic") theta = dynamic_theta(scaling, head_dim, theta, longest, where);
  const std::vector<float> waves = wavelengths(head_dim, theta);
  if (type == "yarn") return scale_yarn(waves, scaling, theta, where);
  RopeFrequencies out{inverse(waves), 1.0f};
  if (type == "llama3") {
    scale_llama3(out.inv_freq, scaling, where);
  } else if (type == "linear") {
    const float factor = static_cast<float>(positive(scaling, "factor", where));
    for (float& f : out.inv_freq) f /= factor;
  } else if (type != "default" && type != "dynamic") {
    throw_bad_data(where, "rope type " + type + " is not known",
                   "known: default, linear, dynamic, yarn, llama3");
  }
  return out;
}

RopeTable make_rope_table(int64_t head_dim, int64_t positions, const RopeFrequencies& frequencies) {
  RopeTable table{head_dim, positions, {}, {}};
  const int64_t half = head_dim / 2;
  const float factor = frequencies.attention_factor;
  table.cos.resize(static_cast<size_t>(positions * half));
  table.sin.resize(table.cos.size());
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(p) * frequencies.inv_freq[static_cast<size_t>(i)];
      table.cos[static_cast<size_t>(p * half + i)] =
          static_cast<float>(kernels::det_cos(angle)) * factor;
      table.sin[static_cast<size_t>(p * half + i)] =
          static_cast<float>(kernels::det_sin(angle)) * factor;
    }
  }
  return table;
}

RopeTables::RopeTables(int64_t head_dim, int64_t positions, double theta, Json scaling,
                       std::string where)
    : head_dim_(head_dim), theta_(theta), scaling_(std::move(scaling)), where_(std::move(where)) {
  int64_t plain = positions;
  if (rope_depends_on_length(scaling_)) {
    limit_ = static_cast<int64_t>(
        std::clamp(positive(scaling_, "max_position_embeddings", where_), 1.0, 1e15));
    plain = std::min(positions, limit_);
  }
  plain_ = std::make_shared<const RopeTable>(make_rope_table(
      head_dim_, plain, rope_frequencies(head_dim_, theta_, scaling_, plain, where_)));
}

std::shared_ptr<const RopeTable> RopeTables::of(int64_t longest) const {
  if (limit_ == 0 || longest <= limit_) return plain_;
  const std::lock_guard lock(mutex_);
  if (long_ == nullptr || long_->positions != longest) {
    long_ = std::make_shared<const RopeTable>(make_rope_table(
        head_dim_, longest, rope_frequencies(head_dim_, theta_, scaling_, longest, where_)));
  }
  return long_;
}

}  // namespace loongforge::graph
