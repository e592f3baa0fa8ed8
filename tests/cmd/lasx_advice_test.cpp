// What train says of a LASX that is off, with the processor that this runs on: nothing on most
// machines, one line under emulation with lasx=off.
#include <doctest/doctest.h>

#include "support/json.h"
#include "support/program.h"

namespace loongforge::test {
namespace {

TEST_CASE("train says once what version --json has of a LASX that is off, and nothing otherwise") {
  const Outcome version = run({{program("loongforge"), "version", "--json"}});
  const support::Json advice = support::Json::parse(version.out, "version").at("isa_advice");
  const Outcome train = run({{program("loongforge"), "train", "--model_path", "/nowhere",
                              "--dataset", "none", "--output_dir", "/nowhere/out"}});
  CHECK(train.code == 66);
  if (advice.is_null()) {
    CHECK(train.err.find("LASX") == std::string::npos);
    return;
  }
  const size_t first = train.err.find(advice.as_string());
  REQUIRE(first != std::string::npos);
  CHECK(train.err.find(advice.as_string(), first + 1) == std::string::npos);
}

}  // namespace
}  // namespace loongforge::test
