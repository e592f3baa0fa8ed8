#include "graph/ops/rope_table.h"

#include <doctest/doctest.h>

#include <cmath>

#include "support/expect_error.h"

using namespace loongforge;

TEST_CASE("default frequencies are theta^(-2i/d)") {
  const auto f = graph::rope_frequencies(64, 100000.0, support::Json(), 1, "m").inv_freq;
  REQUIRE(f.size() == 32);
  for (size_t i = 0; i < f.size(); ++i)
    CHECK(f[i] == doctest::Approx(std::pow(100000.0, -2.0 * static_cast<double>(i) / 64.0)).epsilon(3e-7));
}

TEST_CASE("llama3 scaling keeps short waves, stretches long ones and joins the two") {
  support::Json scaling = support::Json::object();
  scaling.set("rope_type", "llama3");
  scaling.set("factor", 8.0);
  scaling.set("low_freq_factor", 1.0);
  scaling.set("high_freq_factor", 4.0);
  scaling.set("original_max_position_embeddings", 8192);
  const auto plain = graph::rope_frequencies(128, 500000.0, support::Json(), 1, "m").inv_freq;
  const auto scaled = graph::rope_frequencies(128, 500000.0, scaling, 1, "m").inv_freq;
  int kept = 0, stretched = 0, between = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const double wave = 2 * M_PI / plain[i];
    if (wave < 8192.0 / 4) {
      ++kept;
      CHECK(scaled[i] == plain[i]);
    } else if (wave > 8192.0) {
      ++stretched;
      CHECK(scaled[i] == doctest::Approx(plain[i] / 8.0).epsilon(1e-6));
    } else {
      ++between;
      const double s = (8192.0 / wave - 1.0) / 3.0;
      CHECK(scaled[i] == doctest::Approx((1 - s) * plain[i] / 8.0 + s * plain[i]).epsilon(1e-6));
    }
  }
  CHECK(kept > 10);
  CHECK(stretched > 10);
  CHECK(between > 1);
}

TEST_CASE("tables are cosines and sines of fp32 angles") {
  const std::vector<float> f = {1.0f, 0.01f};
  const graph::RopeTable t = graph::make_rope_table(4, 1000, {f, 1.0f});
  for (int64_t p : {0, 1, 17, 999}) {
    for (int64_t i = 0; i < 2; ++i) {
      const float angle = static_cast<float>(p) * f[static_cast<size_t>(i)];
      CHECK(t.cos[static_cast<size_t>(p * 2 + i)] == doctest::Approx(std::cos(static_cast<double>(angle))).epsilon(1e-7));
      CHECK(t.sin[static_cast<size_t>(p * 2 + i)] == doctest::Approx(std::sin(static_cast<double>(angle))).epsilon(1e-7));
    }
  }
}

TEST_CASE("unknown or incomplete scaling is refused") {
  support::Json scaling = support::Json::object();
  scaling.set("rope_type", "wombat");
  LF_CHECK_ERROR(graph::rope_frequencies(64, 1e4, scaling, 1, "m"), ErrorCode::kBadData, "rope type wombat is not known");
  scaling.set("rope_type", "llama3");
  LF_CHECK_ERROR(graph::rope_frequencies(64, 1e4, scaling, 1, "m"), ErrorCode::kBadData, "lacks factor");
}
