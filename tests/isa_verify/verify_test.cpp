// Every operation of this CPU computes what its row says; a wrong one is found.
#include "isa_verify/verify.h"

#include <doctest/doctest.h>

#include "base/stop.h"
#include "isa_verify/samples.h"
#include "support/expect_error.h"

namespace loongforge::isa_verify {
namespace {

using kernels::Isa;

OperationReport run(const std::string& rows, int vectors = 64) {
  static std::vector<Operation> kept;
  kept = parse_operations(rows, "t");
  Runner runner;
  VerifyOptions options;
  options.vectors = vectors;
  return verify_operation(kept[0], options, &runner, nullptr);
}

TEST_CASE("every operation that this CPU has is right") {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kLsx, Isa::kLasx}) {
    const std::string name = kernels::isa_name(isa);
    if (!can_run(isa)) {
      MESSAGE("SKIPPED: this CPU has no " << name);
      continue;
    }
    VerifyOptions options;
    options.isas = {isa};
    options.vectors = 48;
    options.seed = 11;
    uint64_t cases = 0;
    Runner runner;
    const std::vector<const Operation*> selected =
        select_operations(built_in_operations(), options);
    for (const Operation* operation : selected) {
      const OperationReport report = verify_operation(*operation, options, &runner, nullptr);
      CHECK_MESSAGE(!report.failed(), name << " " << operation->form() << " (" << operation->place
                                           << "): " << status_name(report.status) << ", "
                                           << report.mismatches << " of " << report.cases);
      CHECK((report.cases > 0 || report.status == Status::kAbsent ||
             operation->formula.target() == Target::kNone));
      cases += report.cases;
    }
    MESSAGE(name << ": " << selected.size() << " operations, " << cases << " cases");
    CHECK(selected.size() > 700);
  }
}

TEST_CASE(
    "planted faults are found: a wrong formula, a wrong encoding, illegal and faulting code") {
  if (!can_run(kHere)) {
    MESSAGE("SKIPPED: this CPU has no vector instructions");
    return;
  }
  CHECK(run(kRight).status == Status::kPassed);
  CHECK(run(kRight).worst_ulp == 0);
  const OperationReport formula = run(kWrongFormula);
  CHECK(formula.status == Status::kMismatch);
  CHECK(formula.mismatches > 0);
  CHECK(formula.mismatches <= formula.vectors);  // one element of each vector at most
  const OperationReport code = run(kWrongCode);
  CHECK(code.status == Status::kMismatch);
  CHECK(code.failing_vectors > code.vectors / 2);  // a vector of zeros and NaN may give the same
  CHECK(code.worst_ulp > 1000);
  CHECK(run(kIllegal).status == Status::kIllegal);
  CHECK(run(kIllegal).failed());
  CHECK(run(kFaulting).status == Status::kFault);
  const std::string optional = kIllegal.substr(0, kIllegal.size() - 1) + " ; optional\n";
  CHECK(run(optional).status == Status::kAbsent);
  CHECK_FALSE(run(optional).failed());
}

TEST_CASE("a tolerance in steps between neighbours is applied") {
  const Operation operation =
      parse_operations("isa lsx\nv ; 70000000 ; vd,vj ; f32 = j ; ulp 2\n", "t")[0];
  const auto result = [](uint32_t first) {
    Result bytes(16);
    store_element(bytes.data(), Type::kF32, 0, first);
    return bytes;
  };
  const Comparison near = compare_results(operation, result(0x3F800000), result(0x3F800002));
  CHECK(near.cases == 4);
  CHECK(near.mismatches == 0);
  CHECK(near.worst_ulp == 2);
  CHECK(compare_results(operation, result(0x3F800000), result(0x3F800003)).mismatches == 1);
  CHECK(compare_results(operation, result(0x7FC00000), result(0xFFC00001)).mismatches == 0);
  CHECK(compare_results(operation, result(0x7FC00000), result(0x3F800000)).mismatches == 1);
  Operation exact = operation;
  exact.ulp = 0;
  CHECK(compare_results(exact, result(0x80000000), result(0)).mismatches == 1);
  CHECK(compare_results(exact, result(0x7FC00000), result(0x7FC00001)).mismatches == 1);
}

TEST_CASE("many vectors of one operation end at a signal") {
  if (!can_run(kHere)) {
    MESSAGE("SKIPPED: this CPU has no vector instructions");
    return;
  }
  const StopGuard guard;
  raise(SIGTERM);
  LF_CHECK_ERROR(run(kRight, 2000000000), 128 + SIGTERM, "stopped by SIGTERM");
}

TEST_CASE("patterns select by mnemonic; one that matches nothing is an error") {
  VerifyOptions options;
  options.isas = {Isa::kLasx};
  options.patterns = {"xvfmadd.?"};
  CHECK(select_operations(built_in_operations(), options).size() == 2);
  options.patterns = {"xvfmadd.?", "vaddps"};
  LF_CHECK_ERROR(select_operations(built_in_operations(), options), ErrorCode::kUsage,
                 "no operation here is called vaddps");
}

}  // namespace
}  // namespace loongforge::isa_verify
