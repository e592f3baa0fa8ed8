// The scripts of this folder, copied to a checkout of their own beside programs that only tell what
// they were asked: what they refuse and look for before anything runs, what they pass on, and that
// they leave nothing running behind.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "bench/options.h"
#include "bench/started.h"
#include "support/bytes.h"
#include "support/program.h"
#include "support/temp_dir.h"

namespace loongforge::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunUsage = "; usage: tests/bench/run.sh [--rounds N] [--isa LIST]\n";
constexpr const char* kStepUsage =
    "; usage: tests/bench/step.sh [--rounds N] [--isa LIST] [--only LIST] [--check]\n";

void write_script(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  write_file(file, "#!/bin/sh\n" + text);
  fs::permissions(file, fs::perms::owner_all);
}

struct Checkout {
  TempDir dir;
  fs::path calls = dir / "calls";

  Checkout() {
    fs::create_directories(dir / "tests" / "bench");
    for (const auto& entry : fs::directory_iterator(source_dir() / "tests" / "bench"))
      if (entry.path().extension() == ".sh")
        fs::copy_file(entry.path(), dir / "tests" / "bench" / entry.path().filename());
    write_file(calls, "");
  }
  // A program that writes down how it was called.
  void add_program(const std::string& name, const std::string& more = "") const {
    write_script(dir / "build" / "release" / name,
                 "echo \"${0##*/} $*\" >>'" + calls.string() + "'\n" + more);
  }
  void build() const {
    for (const char* name : {"bench/gemm-bench", "bench/sweep-bench", "bench/attention-bench",
                             "bench/step-bench", "bench/precision-bench", "bin/loongforge-convert",
                             "bin/loongforge-train", "tools/lf-random-model"})
      add_program(name);
    write_script(dir / "build" / "release" / "bin" / "loongforge",
                 "[ $1 = version ] && echo "
                 "'{\"version\":\"0\",\"isas_available\":[\"scalar\",\"avx2\",\"avx512\"],\"isa_"
                 "used\":\"avx2\"}' && exit\n"
                 "echo \"loongforge $*\" >>'" +
                     calls.string() + "'\n");
  }
  void take_quickstart() const {
    fs::create_directories(dir / "build" / "quickstart" / "model.lir");
    fs::create_directories(dir / "build" / "quickstart" / "download");
    write_file(dir / "build" / "quickstart" / "download" / "a.gguf", "");
  }
  std::string script(const std::string& name) const {
    return (dir / "tests" / "bench" / name).string();
  }
  Outcome run(const std::string& name, const std::vector<std::string>& options) const {
    std::vector<std::string> words = {script(name)};
    words.insert(words.end(), options.begin(), options.end());
    return test::run({.words = words});
  }
  void check_refused(const std::string& name, const std::vector<std::string>& options, int code,
                     const std::string& line) const {
    const Outcome o = run(name, options);
    CHECK(o.code == code);
    CHECK(o.out.empty());
    CHECK(o.err == line);
    CHECK(read_text(calls).empty());
  }
};

TEST_CASE("run.sh refuses what it does not know, before anything is measured") {
  const Checkout c;
  c.build();
  c.take_quickstart();
  c.check_refused("run.sh", {"--rounds", "1", "--only", "x"}, 2,
                  "run.sh: unknown argument --only" + std::string(kRunUsage));
  c.check_refused("run.sh", {"now"}, 2, "run.sh: unknown argument now" + std::string(kRunUsage));
  c.check_refused("run.sh", {"--rounds"}, 2,
                  "run.sh: --rounds takes a value" + std::string(kRunUsage));
  for (const char* bad : {"0", "-1", "x"})
    c.check_refused(
        "run.sh", {"--rounds", bad}, 2,
        "step.sh: --rounds takes a whole number above 0, not '" + std::string(bad) + "'\n");
  c.check_refused("run.sh", {"--isa", "avx2,lasx"}, 2,
                  "step.sh: --isa takes what this CPU has, scalar avx2 avx512, not 'lasx'\n");
  for (const char* help : {"-h", "--help"}) {
    const Outcome o = c.run("run.sh", {help});
    CHECK(o.code == 0);
    CHECK(o.out == "usage: tests/bench/run.sh [--rounds N] [--isa LIST]\n");
  }
  CHECK(read_text(c.calls).empty());
}

TEST_CASE("run.sh looks for all that it needs before anything is measured") {
  const Checkout c;
  const std::string build =
      "; build first: cmake --preset release && cmake --build --preset release\n";
  c.check_refused("run.sh", {}, 66, "run.sh: no build/release/bench/gemm-bench" + build);
  c.build();
  c.check_refused(
      "run.sh", {}, 66,
      "step.sh: no build/quickstart/model.lir; run scripts/quickstart.sh, which makes it\n");
  c.take_quickstart();
  fs::remove(c.dir / "build" / "release" / "bench" / "attention-bench");
  c.check_refused("run.sh", {}, 66, "run.sh: no build/release/bench/attention-bench" + build);
  c.build();
  for (const char* program : {"bench/step-bench", "tools/lf-random-model"}) {
    fs::remove(c.dir / "build" / "release" / program);
    c.check_refused("run.sh", {}, 66, "step.sh: no build/release/" + std::string(program) + build);
    c.build();
  }
  fs::remove(c.dir / "build" / "quickstart" / "download" / "a.gguf");
  c.check_refused("run.sh", {}, 66,
                  "step.sh: no GGUF file in build/quickstart/download; run scripts/quickstart.sh, "
                  "which fetches it\n");
}

TEST_CASE("run.sh passes its options on to every benchmark") {
  const Checkout c;
  c.build();
  c.take_quickstart();
  const Outcome o = c.run("run.sh", {"--rounds", "2", "--isa", "avx512,avx2"});
  CHECK_MESSAGE(o.code == 0, o.err);
  std::string expected;
  for (const char* name : {"gemm", "sweep", "attention"})
    expected += std::string(name) + "-bench --rounds 2 --isa avx512,avx2\n";
  for (const char* isa : {"avx512", "avx2"}) {
    const std::string rest = " --rounds 2 --scaling\n";
    const std::string models = "build/bench-models/",
                      named = std::string(" --isa ") + isa + " --type ";
    const std::string convert =
        "loongforge convert --input-path build/quickstart/download/a.gguf --output-path "
        "build/bench-models/smollm2-bf16 --quantize bf16\n";
    expected += "step-bench build/quickstart/model.lir" + named + "lora" + rest;
    expected += convert + "step-bench " + models + "smollm2-bf16" + named + "full" + rest;
    expected += "lf-random-model tests/bench/shapes/llama-1b build/bench-models/llama-1b bf16\n";
    expected += "step-bench " + models + "llama-1b" + named + "lora" + rest;
  }
  CHECK(read_text(c.calls) == expected);
  c.add_program("bench/sweep-bench", "exit 7\n");
  CHECK(c.run("run.sh", {}).code == 7);
  CHECK(read_text(c.calls) == expected + "gemm-bench \nsweep-bench \n");
}

TEST_CASE("step.sh refuses what it does not know, and knows what the suite says of this CPU") {
  const Checkout c;
  c.build();
  c.take_quickstart();
  for (const char* flag : {"--rounds", "--isa", "--only"}) {
    c.check_refused("step.sh", {flag}, 2,
                    "step.sh: " + std::string(flag) + " takes a value" + kStepUsage);
    c.check_refused("step.sh", {flag, ""}, 2,
                    "step.sh: " + std::string(flag) + " takes a value" + kStepUsage);
  }
  c.check_refused("step.sh", {"--fast"}, 2,
                  "step.sh: unknown argument --fast" + std::string(kStepUsage));
  c.check_refused("step.sh", {"--rounds", "1.5"}, 2,
                  "step.sh: --rounds takes a whole number above 0, not '1.5'\n");
  c.check_refused("step.sh", {"--only", "smol-lora,x"}, 2,
                  "step.sh: --only takes smol-lora, smol-full, llama-1b, not 'x'\n");
  c.check_refused("step.sh", {"--isa", "nosuch"}, 2,
                  "step.sh: --isa takes what this CPU has, scalar avx2 avx512, not 'nosuch'\n");
  CHECK(c.run("step.sh", {"--help"}).out.starts_with("usage: tests/bench/step.sh "));
  CHECK(c.run("step.sh", {"--only", "smol-lora"}).code == 0);
  CHECK(read_text(c.calls) ==
        "step-bench build/quickstart/model.lir --isa avx2 --type lora --rounds 3 --scaling\n"
        "step-bench build/quickstart/model.lir --isa avx512 --type lora --rounds 3 --scaling\n");

  // The programs of this build.
  const auto real = [&](const std::string& isas) {
    return test::run(
        {.words = {c.script("step.sh"), "--check", "--only", "smol-lora", "--isa", isas},
         .environment = {{"LOONGFORGE_BUILD", binary_dir().string()}}});
  };
  const Outcome o = real(bench::joined(bench::isa_names(), ","));
  CHECK_MESSAGE(o.code == 0, o.err);
  CHECK(real("nosuch").err == "step.sh: --isa takes what this CPU has, " +
                                  bench::joined(bench::isa_names(), " ") + ", not 'nosuch'\n");
}

TEST_CASE("precision.sh refuses what it does not know before it fetches or makes anything") {
  const Checkout c;
  c.build();
  write_file(c.dir / "records", "");
  const std::string usage =
      "; usage: tests/bench/precision.sh [run|report|speed] [--work FOLDER] [--data FILE] [--only "
      "GLOBS] [--seeds N] [--steps N] "
      "[--threads N] [--rounds N]\n";
  const std::string data = (c.dir / "records").string();
  c.check_refused("precision.sh", {"--fast"}, 2, "precision.sh: unknown argument --fast" + usage);
  for (const char* flag : {"--work", "--data", "--seeds", "--only"})
    c.check_refused("precision.sh", {"--data", data, flag}, 2,
                    "precision.sh: " + std::string(flag) + " takes a value" + usage);
  c.check_refused(
      "precision.sh", {"--data", data + "no"}, 66,
      "precision.sh: " + data + "no is not there; --data FILE names the records to learn from\n");
  CHECK(c.run("precision.sh", {"-h"}).out == usage.substr(2));
  const auto real = [&](const std::vector<std::string>& options, const std::string& line) {
    std::vector<std::string> words = {c.script("precision.sh"), "--data", data};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome o =
        test::run({.words = words, .environment = {{"LOONGFORGE_BUILD", binary_dir().string()}}});
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK(o.err.starts_with("precision-bench: " + line));
    CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
    CHECK_FALSE(fs::exists(c.dir / "build" / "precision"));
  };
  real({"--seeds", "0"}, "--seeds takes a whole number from 1 to 1000, not '0'");
  real({"speed", "--only", "random/fp9/*"}, "--only random/fp9/* matches no run");
  fs::remove(c.dir / "build" / "release" / "bin" / "loongforge-train");
  c.check_refused("precision.sh", {"--data", data}, 66,
                  "precision.sh: no build/release/bin/loongforge-train; build first: cmake "
                  "--preset release && cmake --build --preset release\n");
}

TEST_CASE("a signal to a script is passed on, and what it runs is waited for") {
  const Checkout c;
  c.build();
  c.take_quickstart();
  for (const int each : {SIGTERM, SIGINT, SIGHUP})
    for (const char* name : {"step.sh", "run.sh"}) {
      CAPTURE(name);
      write_file(c.calls, "");
      c.add_program("bench/step-bench", "trap 'sleep 0.3; echo ended >>\"" + c.calls.string() +
                                            "\"; exit 75' TERM\n"
                                            "echo started >>'" +
                                            c.calls.string() +
                                            "'\nwhile [ -e \"$0\" ]; do sleep 0.05; done\n");
      Started script({c.script(name)}, c.dir / "log");
      REQUIRE(comes_true([&] { return read_text(c.calls).find("started") != std::string::npos; }));
      script.send(each);
      CHECK(script.wait() == 128 + each);
      CHECK(read_text(c.calls).ends_with("started\nended\n"));
    }
}

TEST_CASE("gemm-bench takes the process that measures with it") {
  const TempDir dir;
  const fs::path bench = binary_dir() / "bench" / "gemm-bench";
  write_file(dir / "log", "");
  const fs::path log = fs::canonical(dir / "log");
  const auto measuring = [&](pid_t except) {  // its processes that hold this log open
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      std::error_code ignored;
      if (name.find_first_not_of("0123456789") != std::string::npos || std::stoi(name) == except)
        continue;
      if (fs::read_symlink(entry.path() / "fd" / "1", ignored) == log) return true;
    }
    return false;
  };
  Started started({bench.string(), "--only", "fwd 4096 M=512", "--isa", "scalar", "--peers", "off"},
                  log);
  REQUIRE(comes_true([&] { return measuring(started.pid()); }));
  started.send(SIGTERM);
  CHECK(started.wait() == -SIGTERM);
  CHECK(comes_true([&] { return !measuring(0); }));
}

}  // namespace
}  // namespace loongforge::test
