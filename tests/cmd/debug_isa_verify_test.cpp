// `loongforge debug --isa-verify`, --replay and --diff as a black box: reports, exit codes, a
// planted fault through every step, files that are wrong.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "isa_verify/samples.h"
#include "support/json.h"
#include "support/program.h"
#include "support/temp_dir.h"

namespace loongforge::test {
namespace {

using isa_verify::can_run;
using isa_verify::kHere;
using support::Json;

Outcome debug(std::vector<std::string> words) {
  words.insert(words.begin(), program("loongforge-debug"));
  return run({std::move(words)});
}

std::string write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
  return path.string();
}

const std::string kHereName = kernels::isa_name(kHere);

TEST_CASE("isa-verify prints a row an operation, or one JSON object") {
  if (!can_run(kHere)) {
    MESSAGE("SKIPPED: this CPU has no vector instructions");
    return;
  }
  const std::string pattern = kHere == kernels::Isa::kAvx2 ? "vmaxps" : "vfmax.s";
  const Outcome text = debug({"--isa-verify", kHereName, "--only", pattern});
  CHECK(text.code == 0);
  CHECK(text.err.empty());
  CHECK(text.out.find("mismatches") != std::string::npos);
  CHECK(text.out.find(kHereName + "  ") != std::string::npos);
  CHECK(text.out.find(" 0 mismatches; all right\n") != std::string::npos);
  const Outcome json =
      debug({"--isa-verify", "--only", pattern, "--json", "--seed", "9", "--vectors", "10"});
  CHECK(json.code == 0);
  const Json report = Json::parse(json.out, "report");
  CHECK(report.at("seed").as_int() == 9);
  CHECK(report.at("failed").as_int() == 0);
  CHECK(report.at("chip").is_string());
  const Json& first = report.at("operations").as_array().front();
  CHECK(first.at("vectors").as_int() == 10);
  CHECK(first.at("cases").as_int() >= 40);
  CHECK(first.at("worst_ulp").as_int() == 0);
  CHECK(first.at("result").as_string() == "ok");
  // Twice the same is the same.
  CHECK(
      debug({"--isa-verify", "--only", pattern, "--json", "--seed", "9", "--vectors", "10"}).out ==
      json.out);
}

TEST_CASE("a planted fault is found, saved, replayed and told apart") {
  if (!can_run(kHere)) {
    MESSAGE("SKIPPED: this CPU has no vector instructions");
    return;
  }
  const TempDir dir;
  const std::string right = write(dir / "right.ops", isa_verify::kRight);
  const std::string wrong = write(dir / "wrong.ops", isa_verify::kWrongCode);
  const std::string failing = (dir / "failing.jsonl").string();
  const auto verify = [&](const std::string& ops, const std::string& save, bool all) {
    std::vector<std::string> words = {"--isa-verify", kHereName, "--only", "lf.*",
                                      "--ops",        ops,       "--save", save};
    if (all) words.emplace_back("--save-all");
    return debug(words);
  };
  CHECK(debug({"--isa-verify", kHereName, "--only", "lf.add", "--ops", right}).code == 0);
  const Outcome found = verify(wrong, failing, false);
  CHECK(found.code == 1);
  CHECK(found.out.find("MISMATCH") != std::string::npos);
  CHECK(found.out.find("1 operation FAILED") != std::string::npos);
  CHECK(found.out.find("wrote 64 vectors to " + failing + "\n") != std::string::npos);
  CHECK(verify(write(dir / "formula.ops", isa_verify::kWrongFormula), failing + "2", false).code ==
        1);

  const Outcome again = debug({"--replay", failing, "--ops", wrong, "--json"});
  CHECK(again.code == 1);
  const Json report = Json::parse(again.out, "report");
  CHECK(report.at("run").as_int() == 64);
  CHECK(report.at("failing").as_int() == 64);
  CHECK(report.at("operations").as_array().front().at("as_recorded").as_int() == 64);
  const Outcome mended = debug({"--replay", failing, "--ops", right});
  CHECK(mended.code == 0);
  CHECK(mended.out.find("64 vectors run, 0 fail, 0 do not apply here\n") != std::string::npos);
  const Outcome unknown = debug({"--replay", failing});
  CHECK(unknown.code == 1);
  CHECK(unknown.out.find("no table has it; name its file by --ops") != std::string::npos);
  CHECK(unknown.err.find("no vector of it applies to this CPU") != std::string::npos);

  // A file that is there is not replaced, and one without vectors is no result.
  const Outcome twice = verify(right, failing, false);
  CHECK(twice.code == 2);
  CHECK(twice.err.find(failing + ": exists; name another file") != std::string::npos);
  CHECK(std::filesystem::file_size(failing) > 1000);
  const std::string none = (dir / "none.jsonl").string();
  CHECK(verify(right, none, false).code == 0);
  for (const Outcome& empty :
       {debug({"--replay", none}), debug({"--diff", none, "--against", none})}) {
    CHECK(empty.code == 65);
    CHECK(empty.out.empty());
    CHECK(empty.err.find("no vector is in it; --save keeps failing vectors only") !=
          std::string::npos);
  }
  CHECK(debug({"--diff", none, "--against", failing}).code == 1);

  const std::string one = (dir / "one.jsonl").string(), two = (dir / "two.jsonl").string();
  CHECK(verify(right, one, true).code == 0);
  CHECK(verify(wrong, two, true).code == 1);
  const Outcome same = debug({"--diff", one, "--against", one});
  CHECK(same.code == 0);
  CHECK(same.out.find("no difference\n") != std::string::npos);
  const Outcome differs = debug({"--diff", one, "--against", two, "--json"});
  CHECK(differs.code == 1);
  CHECK(Json::parse(differs.out, "diff").at("differences").as_int() > 200);
}

TEST_CASE("illegal and faulting operations are reported, not died of") {
  if (!can_run(kHere)) return;
  const TempDir dir;
  const std::string ops = write(dir / "x.ops", isa_verify::kIllegal + isa_verify::kFaulting);
  const std::string saved = (dir / "v.jsonl").string();
  const Outcome outcome =
      debug({"--isa-verify", kHereName, "--only", "lf.*", "--ops", ops, "--save", saved});
  CHECK(outcome.code == 1);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.find("ILLEGAL") != std::string::npos);
  CHECK(outcome.out.find("FAULT") != std::string::npos);
  const Outcome replayed = debug({"--replay", saved, "--ops", ops});
  CHECK(replayed.code == 1);
  CHECK(replayed.out.find("-  ILLEGAL") != std::string::npos);  // an integer's worst ULP
}

TEST_CASE("the table of any instruction set is listed anywhere, and reads back as --ops") {
  for (const char* isa : {"avx2", "avx512", "lsx", "lasx"}) {
    const Outcome list = debug({"--isa-verify", isa, "--list", "--json"});
    CHECK(list.code == 0);
    const Json report = Json::parse(list.out, "list");
    CHECK(report.at("operations").as_array().size() > 700);
  }
  const Outcome text = debug({"--isa-verify", "lasx", "--list", "--only", "xvfmadd.s"});
  CHECK(text.out.find("xvfmadd.s vd,vj,vk,va") != std::string::npos);
  CHECK(text.out.find("f32 = fma(j, k, a)") != std::string::npos);
}

TEST_CASE("what cannot be done is refused on one line") {
  const TempDir dir;
  const auto refuse = [](std::vector<std::string> words, int code, const std::string& says) {
    const Outcome outcome = debug(std::move(words));
    CAPTURE(outcome.err);
    CHECK(outcome.code == code);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find(says) != std::string::npos);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  };
  const std::string elsewhere = kernels::isa_name(isa_verify::kElsewhere);
  refuse({"--isa-verify", elsewhere}, 2, "and this is another machine");
  for (const kernels::Isa isa : {kernels::Isa::kAvx512, kernels::Isa::kLasx})
    if (!can_run(isa))
      refuse({"--isa-verify", kernels::isa_name(isa)}, 2, isa_verify::why_not_run(isa));
  refuse({"--isa-verify", "mmx"}, 2, "'mmx' is not one of");
  refuse({"--isa", "--isa-verify"}, 2, "several things to do at once");
  refuse({"--isa", "--seed", "3"}, 2, "counts for --isa-verify only");
  refuse({"--isa", "--against", "x"}, 2, "counts for --diff only");
  refuse({"--diff", "x"}, 2, "--against is missing");
  refuse({"--isa-verify", kHereName, "--list", "--vectors", "5"}, 2,
         "--vectors has no effect with --list");
  refuse({"--isa-verify", kHereName, "--list", "--save", "x"}, 2,
         "--save has no effect with --list");
  refuse({"--isa-verify", kHereName, "--save-all"}, 2, "--save-all without --save");
  refuse({"--isa-verify", kHereName, "--only", "nosuch"}, 2, "no operation here is called nosuch");
  std::filesystem::create_symlink("vectors.jsonl", dir / "link");
  refuse({"--isa-verify", kHereName, "--save", (dir / "link").string()}, 2,
         "link: is a symbolic link");
  CHECK(std::filesystem::is_symlink(dir / "link"));
  refuse({"--isa-verify", kHereName, "--save", (dir / "no" / "file").string()}, 1,
         "no/file: cannot create: No such file");
  refuse({"--isa-verify", kHereName, "--ops", (dir / "none").string()}, 66, "none");
  refuse({"--isa-verify", kHereName, "--ops", write(dir / "bad.ops", "isa avx2\nrow\n")}, 65,
         "bad.ops:2: a row has at least four fields");
  refuse({"--isa-verify", kHereName, "--ops",
          write(dir / "wide.ops", "isa avx2\nx ; 90 ; zmm1 ; u8 = d\n")},
         65, "wide.ops:2: zmm1 is no operand of avx2");
  refuse({"--isa-verify", kHereName, "--ops", write(dir / "empty.ops", "# none\nisa avx2\n")}, 65,
         "empty.ops: no row is in it");
  refuse({"--replay", write(dir / "bad.jsonl", "{]\n")}, 65, "bad.jsonl:1");
  refuse({"--replay", (dir / "none").string()}, 66, "none");
  refuse({"--diff", (dir / "none").string(), "--against", (dir / "none").string()}, 66, "none");
  refuse({"--isa-verify", kHereName, "--only", "lf.*", "--ops",
          write(dir / "range.ops",
                isa_verify::kRight.substr(0, isa_verify::kRight.find("f32")) + "f32 = j[99]\n")},
         65, "the formula reads element 99 of f32, which is not there");
}

}  // namespace
}  // namespace loongforge::test
