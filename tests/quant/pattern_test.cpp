#include "quant/pattern.h"

#include <doctest/doctest.h>

#include "support/expect_error.h"

using namespace loongforge;
using quant::glob_match;

TEST_CASE("globs") {
  CHECK(quant::glob_match("*", ""));
  CHECK(quant::glob_match("a*c", "abbc"));
  CHECK(quant::glob_match("a*b*c", "axbxbxc"));
  CHECK(quant::glob_match("?b", "ab"));
  CHECK_FALSE(quant::glob_match("?b", "b"));
  CHECK_FALSE(quant::glob_match("a*c", "abcd"));
  CHECK_FALSE(quant::glob_match("", "a"));
  CHECK(quant::glob_match("*.mlp.*", "model.layers.3.mlp.up_proj.weight"));
}

TEST_CASE("a pattern names a tensor or its layer") {
  CHECK(quant::layer_match("*.down_proj", "model.layers.0.mlp.down_proj.weight"));
  CHECK(quant::layer_match("*.down_proj.weight", "model.layers.0.mlp.down_proj.weight"));
  CHECK(quant::layer_match("lm_head", "lm_head.weight"));
  CHECK_FALSE(quant::layer_match("*.mlp", "model.layers.0.mlp.down_proj.weight"));
  CHECK_FALSE(quant::layer_match("down_proj", "model.layers.0.mlp.down_proj.weight"));
}

TEST_CASE(
    "a pattern that counts for nothing is found: it matches nothing, or others come before it") {
  const std::vector<std::string> names = {"a.q_proj.weight", "a.k_proj.weight"};
  CHECK_FALSE(quant::unused_pattern({}, names));
  CHECK_FALSE(quant::unused_pattern({"*.q_proj", "*"}, names));
  const auto none = quant::unused_pattern({"*.q_proj", "*.v_proj"}, names);
  REQUIRE(none);
  CHECK(none->index == 1);
  CHECK_FALSE(none->shadowed);
  const auto late = quant::unused_pattern({"*_proj", "*.q_proj"}, names);
  REQUIRE(late);
  CHECK(late->index == 1);
  CHECK(late->shadowed);
}

TEST_CASE("lists of PATTERN=VALUE") {
  const auto list = quant::parse_pattern_values("*.q_proj=bf16,a=b=c", "flag");
  REQUIRE(list.size() == 2);
  CHECK(list[0].pattern == "*.q_proj");
  CHECK(list[0].value == "bf16");
  CHECK(list[1].pattern == "a=b");
  CHECK(list[1].value == "c");
  CHECK(quant::parse_pattern_values("", "flag").empty());
  for (const char* bad : {"x", "=x", "x=", "a=b,,c=d", ","})
    LF_CHECK_ERROR(quant::parse_pattern_values(bad, "some_flag"), ErrorCode::kUsage, "--some_flag");
}
