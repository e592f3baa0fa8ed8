#include "cli/op_report.h"

#include <doctest/doctest.h>

#include <string>

#include "kernels/op_list.h"

namespace loongforge::cli {
namespace {

TEST_CASE("the report holds every operation of the kernels' list, in its order") {
  const support::Json report = ops_json();
  const auto& listed = report.at("operations").as_array();
  const auto ops = kernels::fp8_ops();
  REQUIRE(listed.size() == ops.size());
  CHECK(report.at("count").as_int() == static_cast<int64_t>(ops.size()));
  CHECK(report.at("native_fp8").is_null());
  for (size_t i = 0; i < ops.size(); ++i) {
    CHECK(listed[i].at("name").as_string() == ops[i].row->name);
    CHECK(listed[i].at("family").as_string() == ops[i].family->name);
    CHECK(listed[i].at("direction").as_string() == kernels::direction_name(ops[i].direction));
    CHECK(listed[i].at("format").as_string() == kernels::format_name(ops[i].format));
    CHECK(listed[i].at("isas").as_array().size() == kernels::compiled_isas().size());
    CHECK(listed[i].at("usable").as_array().size() == kernels::available_isas().size());
  }
}

TEST_CASE("as a table: a line for each, and the count") {
  const support::Json report = support::Json::parse(
      R"({"count": 1, "isa_used": "lsx", "native_fp8": null, "operations": [
           {"name": "fp8_addmm", "family": "gemm", "direction": "forward", "format": "e4m3",
            "what": "x", "isas": ["scalar", "lsx", "lasx"], "usable": ["scalar", "lsx"]}]})",
      "t");
  const std::string text = ops_text(report);
  CHECK(text.find("fp8_addmm  forward    e4m3    gemm    scalar lsx   scalar lsx lasx\n") !=
        std::string::npos);
  CHECK(text.ends_with("\n1 FP8 operations; used: lsx; native FP8: none\n"));
}

}  // namespace
}  // namespace loongforge::cli
