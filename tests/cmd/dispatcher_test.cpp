// The dispatcher as a black box: version, help, completion, unknown words, and standard output that
// cannot be written.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "support/json.h"
#include "support/program.h"
#include "support/temp_dir.h"

namespace loongforge::test {
namespace {

Outcome loongforge(std::vector<std::string> words,
                   std::map<std::string, std::string> environment = {}) {
  words.insert(words.begin(), program("loongforge"));
  return run({std::move(words), std::move(environment)});
}

TEST_CASE("version prints number and machine, with --json one object") {
  const Outcome plain = loongforge({"version"});
  CHECK(plain.code == 0);
#if defined(__x86_64__)
  CHECK(plain.out == "v0.4.0 (x86_64)\n");
#else
  CHECK(plain.out == "v0.4.0 (LoongArch64)\n");
#endif
  CHECK(plain.err.empty());
  CHECK(loongforge({"--version"}).out == plain.out);
  const Outcome json = loongforge({"version", "--json"});
  CHECK(json.code == 0);
  const support::Json object = support::Json::parse(json.out, "version");
  CHECK("v" + object.at("version").as_string() + " (" + object.at("machine").as_string() + ")\n" ==
        plain.out);
  for (const char* key : {"isa_used", "compiler", "build_type"}) CHECK(object.at(key).is_string());
  for (const char* key : {"isa_found", "isas_available", "isas_compiled"})
    CHECK(object.at(key).is_array());
  CHECK(object.at("isa_override").is_null());
  const Outcome forced = loongforge({"version", "--json"}, {{"LOONGFORGE_ISA", "scalar"}});
  const support::Json scalar = support::Json::parse(forced.out, "version");
  CHECK(scalar.at("isa_override").as_string() == "scalar");
  for (const auto& [family, isa] : scalar.at("isa_families").as_object())
    CHECK_MESSAGE(isa.as_string() == "scalar", family);
  CHECK(loongforge({"version", "--jsn"}).code == 2);
}

TEST_CASE("without a command the overview goes to standard error, asked for to standard output") {
  const Outcome nothing = loongforge({});
  CHECK(nothing.code == 2);
  CHECK(nothing.out.empty());
  CHECK(nothing.err.starts_with("usage: loongforge"));
  for (const char* word : {"help", "-h"}) {
    const Outcome asked = loongforge({word});
    CHECK(asked.code == 0);
    CHECK(asked.out == nothing.err);
  }
  CHECK(loongforge({"--help"}).out.starts_with("LOONGFORGE(1)"));
  CHECK(loongforge({"help", "train"}).out.starts_with("LOONGFORGE-TRAIN(1)"));
  CHECK(loongforge({"help", "version"}).out.starts_with("LOONGFORGE(1)"));
}

TEST_CASE("an unknown command is a usage error with a suggestion") {
  const Outcome near = loongforge({"trian", "--model_path", "x"});
  CHECK(near.code == 2);
  CHECK(near.out.empty());
  CHECK(near.err == "loongforge: unknown command 'trian'; did you mean train?\n");
  const Outcome far = loongforge({"frobnicate"});
  CHECK(far.code == 2);
  CHECK(far.err ==
        "loongforge: unknown command 'frobnicate'; `loongforge help` lists the commands\n");
  CHECK(loongforge({"help", "conver"}).err ==
        "loongforge: unknown command 'conver'; did you mean convert?\n");
  CHECK(loongforge({"--json", "version"}).code == 2);
  CHECK(loongforge({"a\nb\x1b[2J"}).err.find('\x1b') == std::string::npos);
}

TEST_CASE("completion prints the script that is installed") {
  const Outcome script = loongforge({"completion", "bash"});
  CHECK(script.code == 0);
  CHECK(script.out.find("complete -F _loongforge loongforge ") != std::string::npos);
  CHECK(script.out.find("--learning_rate") != std::string::npos);
  CHECK(script.out.find("--max-shard-size") != std::string::npos);
  CHECK(loongforge({"completion"}).code == 2);
  CHECK(loongforge({"completion", "tcsh"}).code == 2);
}

TEST_CASE("loongforge.cli is the dispatcher; a command runs with the words that follow it") {
  CHECK(run({{program("loongforge.cli"), "version"}}).out == loongforge({"version"}).out);
  const Outcome through = loongforge({"train", "--no_such_flag"});
  CHECK(through.code == 2);
  CHECK(through.err == run({{program("loongforge-train"), "--no_such_flag"}}).err);
}

TEST_CASE("a command that is not installed is named with its place") {
  const TempDir folder;
  std::filesystem::create_directory(folder / "bin");
  std::filesystem::copy_file(program("loongforge"), folder / "bin" / "loongforge");
  const Outcome outcome = run({{(folder / "bin" / "loongforge").string(), "train"}});
  CHECK(outcome.code == 1);
  CHECK(outcome.err.find((folder / "bin" / "loongforge-train").string() +
                         ": No such file or directory") != std::string::npos);
}

TEST_CASE("programs are found in ../libexec/loongforge as well") {
  const TempDir folder;
  std::filesystem::create_directories(folder / "libexec" / "loongforge");
  std::filesystem::create_directory(folder / "bin");
  std::filesystem::copy_file(program("loongforge"), folder / "bin" / "loongforge");
  std::filesystem::copy_file(program("loongforge-convert"),
                             folder / "libexec" / "loongforge" / "loongforge-convert");
  CHECK(run({{(folder / "bin" / "loongforge").string(), "convert", "--version"}}).out ==
        loongforge({"version"}).out);
}

TEST_CASE("a full disk or a closed pipe behind standard output is an error, not a silent success") {
  if (access("/dev/full", W_OK) == 0) {
    for (const char* word : {"version", "help"}) {
      const Outcome full = run({{program("loongforge"), word}, {}, "/dev/full"});
      CHECK(full.code == 1);
      CHECK(full.err.find("standard output: No space left on device") != std::string::npos);
    }
    CHECK(run({{program("loongforge-train"), "-h"}, {}, "/dev/full"}).code == 1);
  } else {
    MESSAGE("SKIPPED: no /dev/full here");
  }
  const Outcome closed =
      run({{"/bin/bash", "-c",
            "set -o pipefail; { sleep 0.2; '" + program("loongforge") + "' help; } | true"}});
  CHECK(closed.code == 141);
  CHECK(closed.err.empty());
}

}  // namespace
}  // namespace loongforge::test
