#include "cli/run.h"

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>

#include "base/error.h"
#include "cli/options_parse.h"
#include "kernels/isa.h"

namespace loongforge::cli {
namespace {

constexpr Option kRows[] = {
    {"count", OptionType::kInt, "1", "[0,100]", "G", "exit code to return"}};
constexpr Command kCommand{"demo", "returns a code", "[options]", kRows};

int run(std::vector<const char*> words, CommandBody body) {
  words.insert(words.begin(), "loongforge-demo");
  return run_command(kCommand, static_cast<int>(words.size()), const_cast<char**>(words.data()),
                     body);
}

TEST_CASE("the body's return and every exception become an exit code") {
  CHECK(run({"--count", "7"},
            [](const Options& o) { return static_cast<int>(o.integer("count")); }) == 7);
  CHECK(run({"--count", "x"}, [](const Options&) { return 0; }) == 2);
  CHECK(run({}, [](const Options&) -> int { throw_bad_data("f", "is wrong"); }) == 65);
  CHECK(run({}, [](const Options&) -> int { throw_no_input("f", "is absent"); }) == 66);
  CHECK(run({}, [](const Options&) -> int { throw_failed("f", "failed"); }) == 1);
  CHECK(run({}, [](const Options&) -> int { throw std::bad_alloc(); }) == 1);
  CHECK(run({}, [](const Options&) -> int { throw std::logic_error("odd"); }) == 1);
}

TEST_CASE("LOONGFORGE_ISA takes what this machine has and lists it otherwise") {
  const kernels::Isa before = kernels::active_isa();
  apply_isa(nullptr);
  apply_isa("");
  CHECK(kernels::active_isa() == before);
  for (const kernels::Isa isa : kernels::available_isas()) {
    apply_isa(kernels::isa_name(isa));
    CHECK(kernels::active_isa() == isa);
  }
  std::string line;
  try {
    apply_isa("avx9");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    line = error.what();
  }
  CHECK(line.starts_with("LOONGFORGE_ISA: 'avx9' is not an instruction set; available: scalar"));
#if defined(__x86_64__)
  CHECK_THROWS_AS(apply_isa("lasx"), Error);  // known, but of another architecture
#endif
  kernels::set_active_isa(before);
}

TEST_CASE("threads: the flag, else at least one from the machine") {
  const std::vector<Option> table = full_table(kCommand);
  Options options(table);
  CHECK(thread_count(options) >= 1);
  options.set("threads", "3", Source::kFlag);
  CHECK(thread_count(options) == 3);
}

}  // namespace
}  // namespace loongforge::cli
