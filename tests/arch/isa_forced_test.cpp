// LOONGFORGE_ISA forces the instruction set that the kernels run, in a process of its own.
#include <doctest/doctest.h>

#include "kernels/isa.h"
#include "support/json.h"
#include "support/program.h"

namespace loongforge::test {
namespace {

std::string used(std::map<std::string, std::string> environment) {
  const Outcome outcome =
      run({{program("loongforge"), "version", "--json"}, std::move(environment)});
  CHECK(outcome.code == 0);
  return support::Json::parse(outcome.out, "version").at("isa_used").as_string();
}

TEST_CASE("isa_forced_is_active") {
  CHECK(used({}) == kernels::isa_name(kernels::available_isas().back()));
  for (const kernels::Isa isa : kernels::available_isas()) {
    MESSAGE("forced: " << std::string(kernels::isa_name(isa)));
    CHECK(used({{"LOONGFORGE_ISA", kernels::isa_name(isa)}}) == kernels::isa_name(isa));
  }
}

TEST_CASE(
    "an unknown or unavailable instruction set is a usage error that lists the available ones") {
  for (const char* name : {"avx3", "AVX2", "lasx", "scalar "}) {
    kernels::Isa isa{};
    bool available = false;
    if (kernels::parse_isa(name, &isa))
      for (const kernels::Isa known : kernels::available_isas())
        available = available || known == isa;
    if (available) continue;
    const Outcome outcome =
        run({{program("loongforge"), "version", "--json"}, {{"LOONGFORGE_ISA", name}}});
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find("LOONGFORGE_ISA: '" + std::string(name) + "'") != std::string::npos);
    CHECK(outcome.err.find("available: scalar") != std::string::npos);
  }
}

}  // namespace
}  // namespace loongforge::test
