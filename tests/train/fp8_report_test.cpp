#include "train/fp8_report.h"

#include <doctest/doctest.h>

using namespace loongforge;

namespace {

quant::StatsMap two_tensors() {
  quant::StatsMap map;
  quant::TensorStats& a = map["a.input"];
  a.elements = 300;
  a.counts.zero = 3;
  a.counts.peak = 7.0f;
  quant::TensorStats& b = map["b.grad"];
  b.gradient = true;
  b.elements = 100;
  b.counts.overflow = 2;
  b.counts.zero = 1;
  b.counts.peak = 28.0f;
  return map;
}

}  // namespace

TEST_CASE(
    "a step's FP8 figures: shares over all tensors, the least headroom, saturated gradients") {
  train::StepFacts facts;
  train::fill_fp8_facts(two_tensors(), &facts);
  CHECK(facts.fp8_overflow == 0.005);
  CHECK(facts.fp8_underflow == 0.01);
  CHECK(facts.fp8_headroom == -1.0);
  CHECK(facts.saturated_gradients == 2);
  CHECK(train::saturated_tensors(two_tensors()) == std::map<std::string, int64_t>{{"b.grad", 2}});
  const support::Json line = train::step_json(facts);
  CHECK(line.at("fp8_underflow").as_double() == 0.01);
  CHECK(line.at("fp8_headroom").as_double() == -1.0);
  CHECK(line.at("fp8_saturated_gradients").as_int() == 2);
  CHECK(train::step_text(facts).find("  CLIPPED: 2") != std::string::npos);

  train::StepFacts none;
  train::fill_fp8_facts({}, &none);
  CHECK_FALSE(train::step_json(none).contains("fp8_headroom"));
  CHECK(train::step_text(none).find("CLIPPED") == std::string::npos);
}

TEST_CASE("statistics as JSON: every figure of every tensor, null where there is none") {
  quant::StatsMap map = two_tensors();
  map["z.input"].elements = 4;  // all zeros: no headroom
  const support::Json json = train::fp8_stats_json(map);
  CHECK(json.as_object().size() == 3);
  const support::Json& b = json.at("b.grad");
  for (const char* key :
       {"format", "overflow", "underflow", "headroom", "amax", "rel_rms", "error_std"})
    CHECK(b.contains(key));
  CHECK(b.at("overflow").as_double() == 0.02);
  CHECK(json.at("z.input").at("headroom").is_null());
}
