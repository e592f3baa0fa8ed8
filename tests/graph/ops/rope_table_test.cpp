#include "graph/ops/rope_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "support/data.h"
#include "support/expect_error.h"

using namespace loongforge;

TEST_CASE("default frequencies are theta^(-2i/d)") {
  const auto f = graph::rope_frequencies(64, 100000.0, support::Json(), 1, "m").inv_freq;
  REQUIRE(f.size() == 32);
  for (size_t i = 0; i < f.size(); ++i)
    CHECK(f[i] ==
          doctest::Approx(std::pow(100000.0, -2.0 * static_cast<double>(i) / 64.0)).epsilon(3e-7));
}

TEST_CASE("every rope type has the frequencies and the factor that transformers has") {
  const support::Json cases =
      support::read_json((test::data_dir() / "graph" / "rope.json").string());
  std::map<std::string, int> seen;
  for (const support::Json& each : cases.as_array()) {
    support::Json scaling = each.at("scaling");
    const std::string type = scaling.at("rope_type").as_string();
    const int64_t made_for = each.at("max_position_embeddings").as_int();
    ++seen[type];
    if (const support::Json* factor = scaling.find("factor");
        factor != nullptr && factor->is_null())  // as HfConfig fills it
      scaling.set("factor", static_cast<double>(made_for) /
                                scaling.at("original_max_position_embeddings").as_double());
    if (type == "dynamic") scaling.set("max_position_embeddings", made_for);
    const std::string shown = each.dump().substr(0, 240);
    CAPTURE(shown);
    const graph::RopeFrequencies ours =
        graph::rope_frequencies(each.at("head_dim").as_int(), each.at("theta").as_double(), scaling,
                                each.at("longest").as_int(), "m");
    const auto& theirs = each.at("inv_freq").as_array();
    REQUIRE(ours.inv_freq.size() == theirs.size());
    double worst = 0;
    for (size_t i = 0; i < theirs.size(); ++i)
      worst = std::max(
          worst, std::fabs(static_cast<double>(ours.inv_freq[i]) / theirs[i].as_double() - 1.0));
    CHECK(worst < 1e-6);  // roundings of fp32, of which transformers makes some in another order
    CHECK(static_cast<double>(ours.attention_factor) ==
          doctest::Approx(each.at("attention_factor").as_double()).epsilon(1e-7));
    CHECK(graph::rope_depends_on_length(scaling) == (type == "dynamic"));
  }
  for (const char* type : {"default", "linear", "dynamic", "llama3"}) CHECK(seen[type] >= 2);
  CHECK(seen["yarn"] >= 8);
}

TEST_CASE("the attention factor multiplies cosines and sines") {
  const graph::RopeTable plain = graph::make_rope_table(4, 20, {{1.0f, 0.1f}, 1.0f}),
                         scaled = graph::make_rope_table(4, 20, {{1.0f, 0.1f}, 1.25f});
  for (size_t i = 0; i < plain.cos.size(); ++i) {
    CHECK(scaled.cos[i] == plain.cos[i] * 1.25f);
    CHECK(scaled.sin[i] == plain.sin[i] * 1.25f);
  }
}

TEST_CASE(
    "tables of rope type dynamic: one up to the model's length, above it one of each length") {
  const support::Json scaling = support::Json::parse(
      R"({"rope_type": "dynamic", "factor": 2.0, "max_position_embeddings": 8})", "t");
  const graph::RopeTables tables(16, 40, 1e4, scaling, "m");
  const auto plain = tables.of(1);
  CHECK(tables.of(8) == plain);
  CHECK(plain->positions == 8);
  CHECK(
      plain->cos ==
      graph::make_rope_table(16, 8, graph::rope_frequencies(16, 1e4, support::Json(), 8, "m")).cos);
  const auto longer = tables.of(20);
  CHECK(longer->positions == 20);
  CHECK(tables.of(20) == longer);
  CHECK(longer->sin ==
        graph::make_rope_table(16, 20, graph::rope_frequencies(16, 1e4, scaling, 20, "m")).sin);
  CHECK(tables.of(21)->sin[8 + 1] != longer->sin[8 + 1]);  // another base
  CHECK(tables.of(3) == plain);                            // no memory between batches
  // Every other type has one table.
  const graph::RopeTables fixed(16, 40, 1e4, support::Json(), "m");
  CHECK(fixed.of(40) == fixed.of(1));
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
      CHECK(t.cos[static_cast<size_t>(p * 2 + i)] ==
            doctest::Approx(std::cos(static_cast<double>(angle))).epsilon(1e-7));
      CHECK(t.sin[static_cast<size_t>(p * 2 + i)] ==
            doctest::Approx(std::sin(static_cast<double>(angle))).epsilon(1e-7));
    }
  }
}

TEST_CASE("unknown or incomplete scaling is refused") {
  support::Json scaling = support::Json::object();
  scaling.set("rope_type", "wombat");
  LF_CHECK_ERROR(graph::rope_frequencies(64, 1e4, scaling, 1, "m"), ErrorCode::kBadData,
                 "rope type wombat is not known");
  scaling.set("rope_type", "llama3");
  LF_CHECK_ERROR(graph::rope_frequencies(64, 1e4, scaling, 1, "m"), ErrorCode::kBadData,
                 "lacks factor");
  const auto refuse = [](const char* text, const char* what) {
    LF_CHECK_ERROR(graph::rope_frequencies(16, 1e4, support::Json::parse(text, "t"), 1, "m"),
                   ErrorCode::kBadData, what);
  };
  refuse(R"({"rope_type": "linear", "factor": 0})", "factor is not above 0");
  refuse(R"({"rope_type": "dynamic", "factor": 2.0})", "lacks max_position_embeddings");
  refuse(R"({"rope_type": "yarn", "factor": 2.0})", "lacks original_max_position_embeddings");
  refuse(
      R"({"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 8, "beta_fast": -1})",
      "beta_fast");
  LF_CHECK_ERROR(
      graph::rope_frequencies(2, 1e4,
                              support::Json::parse(R"({"rope_type": "dynamic", "factor": 2.0,
                 "max_position_embeddings": 8})",
                                                   "t"),
                              1, "m"),
      ErrorCode::kBadData, "head_dim above 2");
}
