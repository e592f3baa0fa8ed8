// The command lines of the benchmarks: the parser by itself, and every program's refusals, which
// come before anything is measured.
#include "bench/options.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/expect_error.h"
#include "support/program.h"

namespace loongforge::test {
namespace {

using namespace loongforge::bench;

const std::vector<std::string> kRowBenches = {"gemm-bench", "attention-bench", "sweep-bench"};

Outcome run_bench(const std::string& name, const std::vector<std::string>& options) {
  std::vector<std::string> words = {(binary_dir() / "bench" / name).string()};
  words.insert(words.end(), options.begin(), options.end());
  return run({.words = words});
}

void check_refused(const std::string& name, const std::vector<std::string>& options,
                   const std::string& says) {
  CAPTURE(name);
  const Outcome o = run_bench(name, options);
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  CHECK_MESSAGE(o.err.starts_with(name + ": " + says), o.err);
  CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
}

TEST_CASE("the table of options reads a command line and makes the usage text") {
  int count = 3;
  bool on = false;
  std::string model, kind = "a", text;
  std::vector<std::string> some;
  CommandLine line("bench");
  line.word("MODEL", &model)
      .number("--count", &count, 9)
      .flag("--on", &on)
      .choice("--kind", {"a", "b"}, &kind);
  line.choices("--some", {"x", "y", "z"}, &some).text("--text", "TEXT", &text);
  CHECK(line.usage() ==
        "usage: bench MODEL [--count N] [--on] [--kind a|b] [--some x|y|z,...] [--text TEXT]");
  line.parse({"--count", "9", "m", "--on", "--kind", "b", "--some", "z,x", "--text", "--on"});
  CHECK(count == 9);
  CHECK(on);
  CHECK(model == "m");
  CHECK(kind == "b");
  CHECK(some == std::vector<std::string>{"z", "x"});
  CHECK(text == "--on");

  const auto refuses = [&](const std::vector<std::string>& words, const std::string& says) {
    model.clear();
    LF_CHECK_ERROR(line.parse(words), ErrorCode::kUsage, says);
  };
  for (const char* bad :
       {"0", "-1", "x", "1x", "10", "", "1.5", " 1", "+1", "99999999999999999999"})
    refuses({"m", "--count", bad},
            "--count takes a whole number from 1 to 9, not '" + std::string(bad) + "'");
  refuses({"m", "--count"}, "--count takes a value: N");
  refuses({"m", "--kind", "c"}, "--kind takes a, b, not 'c'");
  refuses({"m", "--some", "x,,y"}, "--some takes x, y, z, not ''");
  refuses({"m", "--fast"}, "unknown option --fast; usage: bench MODEL");
  refuses({"m", "other"}, "unknown argument 'other'; usage: bench MODEL");
  refuses({""}, "unknown argument ''");
  refuses({}, "no MODEL; usage: bench MODEL");
  LF_CHECK_ERROR(CommandLine("plain").parse({"word"}), ErrorCode::kUsage,
                 "unknown argument 'word'; usage: plain");
}

TEST_CASE("what the benchmarks of kernels take") {
  const RowOptions all = parse_row_options("bench", {});
  CHECK(all.threads == std::vector<int>{1, 2});
  CHECK(all.isas.size() == kernels::available_isas().size());
  CHECK_FALSE(all.isas_named);
  const RowOptions one = parse_row_options(
      "bench", {"--threads", "3", "--isa", "scalar", "--only", "b", "--rounds", "1"});
  CHECK(one.threads == std::vector<int>{3});
  CHECK(one.rounds == 1);
  CHECK(one.isas == std::vector<kernels::Isa>{kernels::Isa::kScalar});
  CHECK(one.isas_named);
  CHECK_NOTHROW(one.check_only({"a", "abc"}));
  CHECK_NOTHROW(all.check_only({"a"}));
  LF_CHECK_ERROR(one.check_only({"a", "c"}), ErrorCode::kUsage,
                 "--only: no row has 'b' in its name; the rows are: a; c");
}

TEST_CASE("every benchmark tells its options") {
  for (const char* name :
       {"gemm-bench", "attention-bench", "sweep-bench", "step-bench", "precision-bench"})
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"-h"}, {"--help"}, {"--rounds", "0", "--help"}}) {
      const Outcome o = run_bench(name, words);
      CAPTURE(name);
      CHECK(o.code == 0);
      CHECK(o.out.starts_with("usage: " + std::string(name) + " "));
      CHECK(std::count(o.out.begin(), o.out.end(), '\n') == 1);
      CHECK(o.err.empty());
      if (std::string(name) != "precision-bench")
        CHECK(o.out.find("[--isa " + joined(isa_names(), "|")) != std::string::npos);
    }
}

TEST_CASE("wrong options end a benchmark in one line, before anything is measured") {
  for (const std::string& name : kRowBenches) {
    check_refused(name, {"--only", "nosuch"},
                  "--only: no row has 'nosuch' in its name; the rows are: ");
    check_refused(name, {"--fast"}, "unknown option --fast; usage: " + name + " ");
    check_refused(name, {"word"}, "unknown argument 'word'; usage: " + name + " ");
    for (const char* bad : {"0", "-3", "x"}) {
      check_refused(name, {"--rounds", bad}, "--rounds takes a whole number from 1 to ");
      check_refused(name, {"--threads", bad},
                    "--threads takes a whole number from 1 to 1024, not ");
    }
    check_refused(name, {"--rounds"}, "--rounds takes a value: N");
    check_refused(name, {"--isa", "nosuch"},
                  "--isa takes " + joined(isa_names(), ", ") + ", not 'nosuch'");
  }
  check_refused("gemm-bench", {"--peers", "yes"}, "--peers takes on, off, not 'yes'");
  check_refused("attention-bench", {"--peers", "off"}, "unknown option --peers");
  check_refused("sweep-bench", {"--only", "cache", "--threads", "2"}, "--only: no row has 'cache'");
  const std::string step = "step-bench";
  check_refused(step, {}, "no MODEL; usage: step-bench MODEL ");
  check_refused(step, {"m", "--fast"}, "unknown option --fast; usage: ");
  check_refused(step, {"m", "n"}, "unknown argument 'n'; usage: ");
  for (const char* flag : {"--rounds", "--rows", "--length", "--threads"})
    for (const char* bad : {"0", "-3", "x"})
      check_refused(step, {"m", flag, bad}, std::string(flag) + " takes a whole number from 1 to ");
  check_refused(step, {"m", "--type", "half"}, "--type takes lora, full, not 'half'");
  check_refused(step, {"m", "--precision", "fp9"}, "--precision takes e4m3, ");
  check_refused(step, {"m", "--isa", "nosuch"},
                "--isa takes " + joined(isa_names(), ", ") + ", not 'nosuch'");
}

TEST_CASE("an instruction set of the environment that there is not ends step-bench") {
  const Outcome o = run({.words = {(binary_dir() / "bench" / "step-bench").string(), "m"},
                         .environment = {{"LOONGFORGE_ISA", "avx9"}}});
  CHECK(o.code == 2);
  CHECK_MESSAGE(o.err.starts_with("step-bench: LOONGFORGE_ISA: 'avx9' is not an instruction set"),
                o.err);
}

TEST_CASE("a row that is asked for is measured") {
  const std::string isa = isa_names().back();
  const Outcome o = run_bench("gemm-bench", {"--only", "lora dA", "--rounds", "1", "--threads", "1",
                                             "--isa", isa, "--peers", "off"});
  CHECK(o.code == 0);
  CHECK(o.out.find("  lora dA ") != std::string::npos);
  CHECK(o.out.find(" of peak, median ") != std::string::npos);
  CHECK(o.out.find("lora dB") == std::string::npos);
}

}  // namespace
}  // namespace loongforge::test
