#include "isa_verify/chip.h"

#include <doctest/doctest.h>

namespace loongforge::isa_verify {
namespace {

TEST_CASE("the chip is named on one line") {
  const std::string name = chip_name();
  CHECK(name.size() > 10);
  CHECK(name.find('\n') == std::string::npos);
}

TEST_CASE("values of /proc/cpuinfo, in either machine's layout") {
  const std::string text =
      "processor\t: 0\nmodel name\t: Intel X\nmicrocode\t: 0x2b\nflags\t\t:\n\nModel Name\t\t: "
      "Loongson-3A6000\n: odd\n";
  CHECK(cpuinfo_value(text, "model name") == "Intel X");
  CHECK(cpuinfo_value(text, "Model Name") == "Loongson-3A6000");
  CHECK(cpuinfo_value(text, "microcode") == "0x2b");
  CHECK(cpuinfo_value(text, "flags").empty());
  CHECK(cpuinfo_value(text, "name").empty());
}

}  // namespace
}  // namespace loongforge::isa_verify
