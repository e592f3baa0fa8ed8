// `loongforge model-inspect` as a black box.
#include <doctest/doctest.h>

#include <set>

#include "support/json.h"
#include "support/program.h"

namespace loongforge::test {
namespace {

Outcome inspect(std::vector<std::string> words) {
  words.insert(words.begin(), {program("loongforge"), "model-inspect"});
  return run({std::move(words)});
}

TEST_CASE("model-inspect --ops lists at least 47 FP8 operations, as text and as JSON") {
  const Outcome text = inspect({"--ops"});
  CHECK(text.code == 0);
  CHECK(text.err.empty());
  const Outcome json = inspect({"--ops", "--json"});
  CHECK(json.code == 0);
  const support::Json report = support::Json::parse(json.out, "ops");
  const auto& operations = report.at("operations").as_array();
  CHECK(operations.size() >= 47);
  CHECK(report.at("count").as_int() == static_cast<int64_t>(operations.size()));
  std::set<std::string> names;
  for (const support::Json& op : operations) {
    names.insert(op.at("name").as_string());
    CHECK(op.at("isas").as_array().front().as_string() == "scalar");
    CHECK(text.out.find("\n" + op.at("name").as_string() + " ") != std::string::npos);
  }
  CHECK(names.contains("fp8_addmm"));
  CHECK(names.contains("loongblas_fp8_gemm"));
  CHECK(text.out.find(std::to_string(operations.size()) + " FP8 operations; used: ") !=
        std::string::npos);
}

TEST_CASE("model-inspect without anything to show is a usage error") {
  const Outcome nothing = inspect({});
  CHECK(nothing.code == 2);
  CHECK(nothing.out.empty());
  CHECK(nothing.err.starts_with("loongforge model-inspect: nothing to show"));
  CHECK(inspect({"--opps"}).code == 2);
}

}  // namespace
}  // namespace loongforge::test
