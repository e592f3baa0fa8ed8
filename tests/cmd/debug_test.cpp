// `loongforge debug` as a black box.
#include <doctest/doctest.h>

#include "support/json.h"
#include "support/program.h"

namespace loongforge::test {
namespace {

Outcome debug(std::vector<std::string> words, std::map<std::string, std::string> environment = {}) {
  words.insert(words.begin(), program("loongforge-debug"));
  return run({std::move(words), std::move(environment)});
}

TEST_CASE("debug --isa says what version --json says") {
  const Outcome text = debug({"--isa"});
  CHECK(text.code == 0);
  CHECK(text.err.empty());
  CHECK(text.out.starts_with("found "));
  const Outcome json = debug({"--isa", "--json"});
  const support::Json report = support::Json::parse(json.out, "debug");
  const support::Json version =
      support::Json::parse(run({{program("loongforge"), "version", "--json"}}).out, "version");
  for (const auto& [key, value] : report.as_object()) CHECK(version.at(key) == value);
  const Outcome forced = debug({"--isa", "--json"}, {{"LOONGFORGE_ISA", "scalar"}});
  CHECK(support::Json::parse(forced.out, "debug").at("isa_used").as_string() == "scalar");
}

TEST_CASE("debug without an action is a usage error") {
  const Outcome nothing = debug({});
  CHECK(nothing.code == 2);
  CHECK(nothing.out.empty());
  CHECK(nothing.err.starts_with("loongforge debug: nothing to do"));
}

}  // namespace
}  // namespace loongforge::test
