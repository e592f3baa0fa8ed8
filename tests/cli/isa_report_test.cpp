#include "cli/isa_report.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "kernels/isa.h"
#include "kernels/op_list.h"

namespace loongforge::cli {
namespace {

using kernels::LasxState;

TEST_CASE("the report says what kernels/isa.h and kernels/cpu.h say") {
  const support::Json report = isa_json();
  const auto& found = report.at("isa_found").as_array();
  REQUIRE(found.size() == kernels::cpu().count);
  for (size_t i = 0; i < found.size(); ++i) {
    const kernels::CpuFeature& feature = kernels::cpu().all[i];
    CHECK(found[i].at("name").as_string() == feature.name);
    CHECK(found[i].at("present").as_bool() == feature.present);
    CHECK(found[i].at("enabled").as_bool() == feature.enabled);
  }
  const auto& available = report.at("isas_available").as_array();
  REQUIRE(available.size() == kernels::available_isas().size());
  for (size_t i = 0; i < available.size(); ++i)
    CHECK(available[i].as_string() == kernels::isa_name(kernels::available_isas()[i]));
  CHECK(report.at("isas_compiled").as_array().size() == kernels::compiled_isas().size());
  CHECK(report.at("isa_used").as_string() == kernels::isa_name(kernels::active_isa()));
  CHECK_FALSE(report.at("isa_emulated").as_bool());
  CHECK(report.at("native_fp8").is_null());
}

TEST_CASE("every family is listed with the ISA that runs it, also after another one is forced") {
  const kernels::Isa before = kernels::active_isa();
  for (const kernels::Isa isa : kernels::available_isas()) {
    REQUIRE(kernels::set_active_isa(isa));
    const support::Json report = isa_json();
    const support::Json& families = report.at("isa_families");
    for (const char* name : {"quant", "gemm", "attention", "rows", "loss", "optim", "reduce"})
      CHECK(families.at(name).as_string() == kernels::isa_name(isa));
    CHECK(families.as_object().size() == kernels::families().size());
  }
  kernels::set_active_isa(before);
}

TEST_CASE("LOONGFORGE_ISA is reported as given, and null where it is not") {
  const char* given = std::getenv("LOONGFORGE_ISA");
  const std::string before = given == nullptr ? "" : given;
  setenv("LOONGFORGE_ISA", "scalar", 1);
  CHECK(isa_json().at("isa_override").as_string() == "scalar");
  setenv("LOONGFORGE_ISA", "", 1);
  CHECK(isa_json().at("isa_override").is_null());
  unsetenv("LOONGFORGE_ISA");
  CHECK(isa_json().at("isa_override").is_null());
  if (given != nullptr) setenv("LOONGFORGE_ISA", before.c_str(), 1);
}

TEST_CASE("as text: one line a fact, what is switched off on a line of its own") {
  const support::Json report = support::Json::parse(
      R"({"isa_found": [{"name": "lsx", "present": true, "enabled": true},
                        {"name": "lasx", "present": true, "enabled": false},
                        {"name": "frecipe", "present": false, "enabled": false}],
          "isas_compiled": ["scalar", "lsx", "lasx"], "isas_available": ["scalar", "lsx"],
          "isa_used": "lsx", "isa_emulated": false, "isa_override": "lsx",
          "isa_families": {"gemm": "lsx", "rows": "scalar"}, "native_fp8": null,
          "isa_advice": "switch it on"})",
      "t");
  CHECK(isa_text(report) ==
        "found         lsx\n"
        "switched off  lasx\n"
        "compiled      scalar lsx lasx\n"
        "available     scalar lsx\n"
        "used          lsx (LOONGFORGE_ISA=lsx)\n"
        "families      gemm lsx, rows scalar\n"
        "native FP8    none\n"
        "switch it on\n");
  const support::Json bare = support::Json::parse(
      R"({"isa_found": [], "isas_compiled": ["scalar"], "isas_available": ["scalar"],
          "isa_used": "avx512", "isa_emulated": true, "isa_override": null, "isa_families": {},
          "native_fp8": "model", "isa_advice": null})",
      "t");
  CHECK(isa_text(bare) ==
        "found         no vector instructions\ncompiled      scalar\navailable     scalar\n"
        "used          avx512 (emulated)\nnative FP8    model\n");
}

TEST_CASE("LASX that is off: what it costs and where it is switched on; nothing where it is on") {
  CHECK(lasx_advice(LasxState::kEnabled).empty());
  CHECK(lasx_advice(LasxState::kNotLoongArch).empty());
  for (const LasxState state : {LasxState::kOff, LasxState::kHidden, LasxState::kNone}) {
    const std::string advice = lasx_advice(state);
    CHECK(advice.find("Advanced -> CPU Configuration -> LASX Support") != std::string::npos);
    CHECK(advice.find("speed") != std::string::npos);
    CHECK(advice.find('\n') == std::string::npos);
  }
  CHECK(lasx_advice(LasxState::kOff).find("although this CPU has it") != std::string::npos);
  CHECK(lasx_advice(LasxState::kOff) != lasx_advice(LasxState::kHidden));
}

}  // namespace
}  // namespace loongforge::cli
