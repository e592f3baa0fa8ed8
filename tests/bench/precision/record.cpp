#include "bench/precision/record.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"

namespace loongforge::bench {
namespace {

using support::Json;

Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double v : values)
    list.push_back(std::isfinite(v) ? Json(v) : Json());  // a skipped step has no loss
  return list;
}

std::vector<double> numbers_of(const Json& json, const char* key, const std::string& where) {
  std::vector<double> values;
  for (const Json& v : json.at(key, where).as_array(key))
    values.push_back(v.is_null() ? NAN : v.as_double(key));
  return values;
}

}  // namespace

std::optional<RunRecord> read_metrics(const std::filesystem::path& file, int64_t steps) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  const std::string text = read_text(file);
  RunRecord record;
  const auto count = static_cast<size_t>(steps);
  record.loss.assign(count, NAN);
  record.grad_norm.assign(count, NAN);
  record.step_ms.assign(count, NAN);
  record.eval_before = record.eval_after = NAN;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // the run was killed while it wrote this line
    const Json line = Json::parse(std::string_view(text).substr(begin, end - begin),
                                  file.string() + ":" + std::to_string(++number));
    begin = end + 1;
    const int64_t step = line.get_int("step", -1);
    if (step < 0 || step > steps)
      throw_bad_data(file, "holds step " + std::to_string(step) + " of " + std::to_string(steps));
    if (line.get_string("event", "") == "eval") {
      (step == 0 ? record.eval_before : record.eval_after) = line.get_double("eval_loss", NAN);
    } else if (step > 0) {
      const auto at = static_cast<size_t>(step - 1);
      record.loss[at] = line.get_double("loss", NAN);
      record.grad_norm[at] = line.get_double("grad_norm", NAN);
      record.step_ms[at] = line.get_double("step_ms", NAN);
      record.memory_mb = std::max(record.memory_mb, line.get_double("mem_mb", 0));
    }
  }
  const auto absent = [](double v) { return std::isnan(v); };
  if (absent(record.eval_before) || absent(record.eval_after) ||
      std::any_of(record.step_ms.begin(), record.step_ms.end(), absent))
    return std::nullopt;
  return record;
}

Json record_json(const RunRecord& record) {
  Json json = Json::object();
  json.set("loss", numbers(record.loss));
  json.set("grad_norm", numbers(record.grad_norm));
  json.set("step_ms", numbers(record.step_ms));
  json.set("eval_before", record.eval_before);
  json.set("eval_after", record.eval_after);
  json.set("memory_mb", record.memory_mb);
  return json;
}

RunRecord record_of(const Json& json, const std::string& where) {
  RunRecord record;
  record.loss = numbers_of(json, "loss", where);
  record.grad_norm = numbers_of(json, "grad_norm", where);
  record.step_ms = numbers_of(json, "step_ms", where);
  record.eval_before = json.at("eval_before", where).as_double("eval_before");
  record.eval_after = json.at("eval_after", where).as_double("eval_after");
  record.memory_mb = json.at("memory_mb", where).as_double("memory_mb");
  return record;
}

}  // namespace loongforge::bench
