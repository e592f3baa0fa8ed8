#include "cli/isa_report.h"

#include <doctest/doctest.h>

#include "kernels/isa.h"

namespace loongforge::cli {
namespace {

TEST_CASE("the report says what kernels/isa.h says") {
  const support::Json report = isa_json();
  CHECK(report.at("isa_found").as_string() == kernels::isa_features());
  const auto& available = report.at("isas_available").as_array();
  REQUIRE(available.size() == kernels::available_isas().size());
  for (size_t i = 0; i < available.size(); ++i)
    CHECK(available[i].as_string() == kernels::isa_name(kernels::available_isas()[i]));
  CHECK(report.at("isa_used").as_string() == kernels::isa_name(kernels::active_isa()));
}

TEST_CASE("as text: one line a fact") {
  const support::Json report = support::Json::parse(
      R"({"isa_found": "lsx lasx", "isas_available": ["scalar", "lsx"], "isa_used": "lsx"})", "t");
  CHECK(isa_text(report) == "found      lsx lasx\navailable  scalar lsx\nused       lsx\n");
  const support::Json bare = support::Json::parse(
      R"({"isa_found": "", "isas_available": ["scalar"], "isa_used": "scalar"})", "t");
  CHECK(isa_text(bare).starts_with("found      no vector instructions\n"));
}

}  // namespace
}  // namespace loongforge::cli
