#include "cli/version.h"

#include <doctest/doctest.h>
#include <sys/utsname.h>

#include <fstream>
#include <sstream>

#include "kernels/isa.h"
#include "support/places.h"

namespace loongforge::cli {
namespace {

TEST_CASE("the version is the one of CMakeLists.txt, the machine the one of uname") {
  std::ifstream file(test::source_dir() / "CMakeLists.txt");
  std::stringstream text;
  text << file.rdbuf();
  CHECK(text.str().find("project(loongforge VERSION " + std::string(version_number()) + " ") !=
        std::string::npos);
  utsname name{};
  REQUIRE(uname(&name) == 0);
  const std::string machine =
      std::string(name.machine) == "loongarch64" ? "LoongArch64" : name.machine;
  CHECK(version_line() == "v" + std::string(version_number()) + " (" + machine + ")");
}

TEST_CASE("the JSON form names the instruction sets that the kernels report") {
  const support::Json json = version_json();
  CHECK(json.at("isa_used").as_string() == kernels::isa_name(kernels::active_isa()));
  CHECK(json.at("isas_available").as_array().size() == kernels::available_isas().size());
  CHECK(json.at("isas_available").as_array().front().as_string() == "scalar");
  for (const char* key : {"version", "machine", "isa_found", "compiler", "build_type"})
    CHECK(json.at(key).is_string());
}

}  // namespace
}  // namespace loongforge::cli
