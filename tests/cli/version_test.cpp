#include "cli/version.h"

#include <doctest/doctest.h>
#include <sys/utsname.h>

#include <fstream>
#include <sstream>

#include "kernels/isa.h"
#include "support/places.h"
#include "support/program.h"

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
  for (const char* key : {"version", "machine", "compiler", "build_type"})
    CHECK(json.at(key).is_string());
}

TEST_CASE("the JSON form lists what was found, feature by feature") {
  const support::Json json = version_json();
  for (const support::Json& feature : json.at("isa_found").as_array())
    CHECK((feature.at("present").as_bool() || !feature.at("enabled").as_bool()));
  CHECK(json.at("isa_families").at("gemm") == json.at("isa_used"));
}

TEST_CASE("the JSON form names every library that libcore links, with its version") {
  const support::Json json = version_json();
  const support::Json& libraries = json.at("libraries");
  for (const char* name : {"CLI11", "fmt", "hwloc", "libgcrypt", "nlohmann_json", "pcre2",
                           "sentencepiece", "spdlog", "utf8proc"}) {
    REQUIRE_MESSAGE(libraries.contains(name), name);
    const std::string& version = libraries.at(name).as_string();
    CHECK_MESSAGE((version.find_first_not_of("0123456789.") == std::string::npos &&
                   version.find('.') != std::string::npos),
                  name << " " << version);
  }
  // The packages whose version number is also the library's.
  for (const auto& [name, module] : {std::pair{"libgcrypt", "libgcrypt"},
                                     {"pcre2", "libpcre2-8"},
                                     {"sentencepiece", "sentencepiece"},
                                     {"spdlog", "spdlog"}}) {
    const test::Outcome o = test::run({{"/usr/bin/pkg-config", "--modversion", module}});
    REQUIRE(o.code == 0);
    CHECK(o.out == libraries.at(name).as_string() + "\n");
  }
}

}  // namespace
}  // namespace loongforge::cli
