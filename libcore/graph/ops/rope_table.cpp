#include "graph/ops/rope_table.h"

#include "base/error.h"
#include "kernels/math.h"

namespace loongforge::graph {
namespace {

constexpr double kPi = 3.14159265358979323846;

double need(const support::Json& scaling, const char* key, const std::string& where) {
  const support::Json* value = scaling.find(key);
  if (value == nullptr || value->is_null()) throw_bad_data(where, std::string("rope scaling lacks ") + key);
  return value->as_double(key);
}

// Long wavelengths are stretched by `factor`, short ones kept, those between interpolated.
void scale_llama3(std::vector<float>& inv_freq, const support::Json& scaling, const std::string& where) {
  const double factor = need(scaling, "factor", where);
  const double low = need(scaling, "low_freq_factor", where), high = need(scaling, "high_freq_factor", where);
  const double original = need(scaling, "original_max_position_embeddings", where);
  if (!(factor > 0) || !(low > 0) || !(high > low) || !(original > 0))
    throw_bad_data(where, "rope scaling llama3 needs factor > 0 and 0 < low_freq_factor < high_freq_factor");
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

}  // namespace

std::vector<float> rope_inv_freq(int64_t head_dim, double theta, const support::Json& scaling, const std::string& where) {
  std::vector<float> inv_freq(static_cast<size_t>(head_dim / 2));
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    inv_freq[static_cast<size_t>(i)] = 1.0f / static_cast<float>(kernels::det_pow(theta, exponent));
  }
  if (!scaling.is_object()) return inv_freq;
  std::string type = scaling.get_string("rope_type", scaling.get_string("type", "default"));
  if (type == "llama3")
    scale_llama3(inv_freq, scaling, where);
  else if (type != "default")
    throw_bad_data(where, "rope type " + type + " is not known", "known: default, llama3");
  return inv_freq;
}

RopeTable make_rope_table(int64_t head_dim, int64_t positions, const std::vector<float>& inv_freq) {
  RopeTable table{head_dim, positions, {}, {}};
  const int64_t half = head_dim / 2;
  table.cos.resize(static_cast<size_t>(positions * half));
  table.sin.resize(table.cos.size());
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(p) * inv_freq[static_cast<size_t>(i)];
      table.cos[static_cast<size_t>(p * half + i)] = static_cast<float>(kernels::det_cos(angle));
      table.sin[static_cast<size_t>(p * half + i)] = static_cast<float>(kernels::det_sin(angle));
    }
  }
  return table;
}

}  // namespace loongforge::graph
