// The precision proof's own logic: its figures by hand, its chart, and short runs of the tiny model
// that are stopped, gone on with, found again and reported.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/file_ops.h"
#include "bench/precision/curves.h"
#include "bench/precision/plan.h"
#include "bench/precision/record.h"
#include "bench/precision/speed.h"
#include "bench/precision/store.h"
#include "bench/precision/svg.h"
#include "bench/precision/table.h"
#include "bench/started.h"
#include "cmd/train_runs.h"
#include "support/bytes.h"
#include "support/expect_error.h"

namespace loongforge::test {
namespace {

using namespace loongforge::bench;

RunRecord made_record(const std::vector<double>& loss, double norm, double eval_after) {
  RunRecord r;
  r.loss = loss;
  r.grad_norm.assign(loss.size(), norm);
  r.step_ms.assign(loss.size(), 100);
  r.eval_before = 8;
  r.eval_after = eval_after;
  r.memory_mb = 50;
  return r;
}

size_t count_of(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::vector<std::string> training_into(const std::filesystem::path& output) {
  return {program("loongforge-train"),   "--model_path", tiny_model(), "--dataset",
          kQuickstart / "records.jsonl", "--output_dir", output};
}

TEST_CASE("runs come in the order that answers soonest, and can be chosen") {
  const std::vector<Part> parts = {smollm2_part("m", "d", 0), random_part("r", "d", 0)};
  const std::vector<Run> all = plan_runs(parts, 3, "");
  CHECK(all.size() == 12 + 39);
  CHECK(all[0].id() == "smollm2/bf16/1");
  CHECK(all[1].id() == "smollm2/fp8/1");
  CHECK(all[2].id() == "smollm2/bf16/2");
  CHECK(all[6].id() == "smollm2/fp32/1");
  CHECK(all[12].id() == "random/bf16/1");
  CHECK(plan_runs(parts, 3, "random/compute*/2,smollm2/bf16/*").size() == 7);
  LF_CHECK_ERROR(plan_runs(parts, 3, "random/fp9/*"), ErrorCode::kUsage, "matches no run");
  const std::vector<std::string> words = all[1].arguments();
  CHECK(std::vector<std::string>(words.end() - 4, words.end()) ==
        std::vector<std::string>{"--fp8_precision", "e4m3", "--seed", "1"});
}

TEST_CASE("the figures of the table, by hand") {
  CHECK(mean_of_last({1, 2, 3, 5}, 2) == 4);
  CHECK(mean_of_last({1, 3}, 20) == 2);
  CHECK(trailing_mean({1, 3, 5, 9}, 2) == std::vector<double>{1, 2, 4, 7});
  CHECK(percent(1.5, 2) == -25);
  CHECK(mean_deviation({1.1, 1.8}, {1, 2}) == doctest::Approx(10));
  CHECK(*steps_to({4, 2, 0}, 3) == 2);
  CHECK_FALSE(steps_to({4, 2, 3}, 1));
  const Spread s = spread_of({1, 4, -2});
  CHECK(s.mean == 1);
  CHECK(s.low == -2);
  CHECK(s.high == 4);
  CHECK(spread_of({}).count == 0);

  const Part part = smollm2_part("m", "d", 4);
  Records records;
  records["bf16"][1] =
      made_record({8, 4, 4, 4}, 2, 4);  // mean 5; level: (8 + 4 + 4) / 3 after 3 of 4 steps
  records["bf16"][2] = made_record({8, 8, 8, 8}, 2, 4);  // mean 8
  records["fp8"][1] = made_record({8, 4, 4, 4.2}, 2.1, 4.4);
  records["fp8"][2] = made_record({8, 8, 8, 8.4}, 1.8, 4);
  records["compute"][3] = made_record({9, 9, 9, 9}, 2, 9);  // its pair is not finished
  const std::vector<Row> rows = compare(part, records);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].recipe == "bf16");
  CHECK(rows[0].gap.mean == 0);
  CHECK(rows[1].gaps.at(1) == doctest::Approx(1));
  CHECK(rows[1].gaps.at(2) == doctest::Approx(1.25));
  CHECK(rows[1].gap.mean == doctest::Approx(1.125));
  CHECK(rows[1].eval_gap.mean == doctest::Approx(5));
  CHECK(rows[1].norm_deviation.mean == doctest::Approx(7.5));
  CHECK(rows[1].steps_to_level.mean == doctest::Approx(2));  // steps 3 and 1
  CHECK(rows[2].gap.count == 0);
  CHECK_FALSE(judge(part, rows, 3));
  CHECK_FALSE(judge(part, rows, 2)->kept);
  CHECK(judge(part, rows, 2)->line == "fp8: +1.125 % against bf16, bar 0.25 %: MISSED");
  Part other = part;
  other.bar = 1.13;
  CHECK(judge(other, rows, 2)->line == "fp8: +1.125 % against bf16, bar 1.13 %: kept");
  std::vector<Row> lower = rows;
  lower[1].gap.mean = -0.3;
  CHECK(judge(part, lower, 2)->line.ends_with("kept, lower than bf16 by more than the bar"));
  lower[1].gap.mean = NAN;
  CHECK_FALSE(judge(part, lower, 2)->kept);

  const std::string table = main_table(part, rows, {{"fp8", {200, 500, 60}}});
  CHECK(table.find("| FP8, the default (saved, block) | 2 | 6.3000 | 6.5750 | +1.125 (+1.00 to "
                   "+1.25) | 8.0000 | 4.2000 | "
                   "+5.000 (+0.00 to +10.00) | 7.50 | 200 | 2, 1 | 60 |") != std::string::npos);
  CHECK(table.find("| FP8 compute, block | 1 | 9.0000 |") != std::string::npos);
  CHECK(seed_table(rows).find(
            "| FP8, the default (saved, block) | +1.000 / +10.000 | +1.250 / +0.000 |") !=
        std::string::npos);
}

TEST_CASE("a chart has axes, a legend and few bytes") {
  CHECK(round_ticks(0, 10) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(round_ticks(-0.3, 0.31).size() >= 3);
  const Part part = random_part("m", "d", 300);
  Records records;
  for (const Recipe& recipe : part.recipes)
    for (int64_t seed = 1; seed <= 3; ++seed) {
      std::vector<double> loss;
      for (int i = 0; i < 300; ++i)
        loss.push_back(7 / (1 + 0.01 * i) + 0.01 * static_cast<double>(seed));
      records[recipe.name][seed] = made_record(loss, 1, 3);
    }
  records["compute"][2].loss[100] = NAN;  // a skipped step
  const std::string svg = draw_curves(part, records);
  CHECK(svg.size() < 100000);
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count_of(svg, "<polyline") == 2 * part.recipes.size());
  CHECK(count_of(svg, "<text") == count_of(svg, "</text>"));
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find(">against bf16, %</text>") != std::string::npos);
  for (const Recipe& recipe : part.recipes)
    CHECK(count_of(svg, ">" + recipe.title + "</text>") == 1);
  CHECK(draw_svg("a < b & c", "x", {}).find("a &lt; b &amp; c") != std::string::npos);

  // Places: x from 70 to 710, y from 294 (the low end less 3 %) up to 44.
  const std::string line = draw_svg("t", "x", {{"y", {{"one", {{0, 0}, {10, 100}}}}}});
  CHECK(line.find("points=\"70.0,286.9 710.0,51.1 \"") != std::string::npos);
}

TEST_CASE("a record is whole or none, and a resumed run's later lines count") {
  const TempDir dir;
  const fs::path file = dir.path() / "metrics.jsonl";
  const std::string start =
      R"({"event":"eval","step":0,"eval_loss":7.5})"
      "\n"
      R"({"event":"step","step":1,"loss":7,"grad_norm":2,"step_ms":10,"mem_mb":40})"
      "\n"
      R"({"event":"step","step":2,"loss":1,"grad_norm":1,"step_ms":20,"mem_mb":90})"
      "\n";
  CHECK_FALSE(read_metrics(file, 2));
  write_file(file, start);
  CHECK_FALSE(read_metrics(file, 2));  // no last evaluation
  const std::string again =
      R"({"event":"step","step":2,"loss":null,"grad_norm":3,"step_ms":30,"mem_mb":50})"
      "\n"
      R"({"event":"eval","step":2,"eval_loss":6.5})";
  write_file(file, start + again);
  CHECK_FALSE(read_metrics(file, 2));  // its last line is half written
  write_file(file, start + again + "\n");
  const auto record = read_metrics(file, 2);
  REQUIRE(record);
  CHECK(record->loss[0] == 7);
  CHECK(std::isnan(record->loss[1]));
  CHECK(record->grad_norm == std::vector<double>{2, 3});
  CHECK(record->eval_before == 7.5);
  CHECK(record->eval_after == 6.5);
  CHECK(record->memory_mb == 90);
  const RunRecord copy =
      record_of(support::Json::parse(record_json(*record).dump(), "copy"), "copy");
  CHECK(std::isnan(copy.loss[1]));
  CHECK(copy.step_ms == record->step_ms);
  LF_CHECK_ERROR(read_metrics(file, 1), ErrorCode::kBadData, "step 2 of 1");
}

struct Bench {
  TempDir dir;
  std::vector<std::string> words(const std::string& action,
                                 const std::vector<std::string>& more) const {
    std::vector<std::string> all = {(binary_dir() / "bench" / "precision-bench").string(),
                                    action,
                                    "--work",
                                    dir.path() / "work",
                                    "--random",
                                    tiny_model(),
                                    "--dataset",
                                    kQuickstart / "records.jsonl",
                                    "--train",
                                    program("loongforge-train"),
                                    "--steps",
                                    "6",
                                    "--seeds",
                                    "2",
                                    "--threads",
                                    "2"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome run(const std::string& action, const std::vector<std::string>& more) const {
    return test::run({.words = words(action, more)});
  }
};

TEST_CASE("runs are taken once, gone on with after a stop, and reported") {
  const Bench bench;
  const std::vector<std::string> chosen = {"--only", "random/bf16/*,random/fp8/*"};
  const std::vector<Part> parts = {random_part(tiny_model(), kQuickstart / "records.jsonl", 6)};
  const std::vector<Run> runs = plan_runs(parts, 2, "random/bf16/*,random/fp8/*");
  Store store(bench.dir.path() / "work");

  // As a run that is stopped leaves it: a checkpoint after step 2 and no end.
  const fs::path folder = store.folder(runs[1]);
  std::string message;
  REQUIRE(store.take(runs[1], {program("loongforge-train"), {"--save_total_limit", "0"}},
                     &message) == Ended::kDone);
  const RunRecord whole = *store.find(runs[1]);
  std::vector<std::string> words = training_into(folder / "out");
  words.insert(words.end(), {"--save_total_limit", "0"});
  for (const std::string& word : runs[1].arguments()) words.push_back(word);
  REQUIRE(test::run({.words = words}).code == 0);
  remove_tree(folder / "result.json");
  remove_tree(folder / "train.log");
  remove_tree(folder / "out" / "final");
  for (const char* later : {"checkpoint-4", "checkpoint-6"}) remove_tree(folder / "out" / later);
  point_link(folder / "out" / "latest", "checkpoint-2");

  const Outcome first = bench.run("run", chosen);
  CHECK_MESSAGE(first.code != 2, first.err);
  CHECK(first.out.find("random: 4 of 26 runs are finished") != std::string::npos);
  CHECK(read_text(folder / "train.log").find("step 3/6") != std::string::npos);
  CHECK(read_text(folder / "train.log").find("step 2/6") == std::string::npos);
  CHECK(store.find(runs[1])->loss == whole.loss);
  CHECK(store.find(runs[1])->eval_after == whole.eval_after);
  CHECK_FALSE(fs::exists(folder / "out"));
  CHECK(first.out.find("| FP8, the default (saved, block) | 2 | ") != std::string::npos);
  CHECK(first.out.find("random/fp8/1: ") != std::string::npos);
  CHECK(read_text(bench.dir.path() / "work" / "precision_random.svg").starts_with("<svg "));

  const Outcome second = bench.run("run", chosen);  // nothing is left to do
  CHECK(second.code == first.code);
  CHECK(second.out.find("random/fp8/1: ") == std::string::npos);
  CHECK(second.out == first.out.substr(first.out.find("\nrandom: 4 of 26")));
  CHECK(bench.run("report", {}).out == second.out);

  // Another model's, another dataset's and other options' runs have folders of their own.
  Part other = parts[0];
  other.arguments.push_back("--weight_decay");
  other.arguments.push_back("0.1");
  CHECK_FALSE(store.find({&other, &other.recipes[1], 1}));
  other = parts[0];
  other.dataset = kQuickstart / "records_eval.jsonl";
  CHECK_FALSE(store.find({&other, &other.recipes[1], 1}));
}

TEST_CASE("a run that fails is told, the others go on") {
  const Bench bench;
  const fs::path train = bench.dir.path() / "train";
  write_file(train, "#!/bin/sh\ncase \"$*\" in *fp32*) echo 'no luck' >&2; exit 1;; esac\nexec " +
                        program("loongforge-train") + " \"$@\"\n");
  fs::permissions(train, fs::perms::owner_all);
  const Outcome o =
      bench.run("run", {"--only", "random/fp32/1,random/bf16/1", "--train", train.string()});
  CHECK(o.code == 1);
  CHECK(o.err == "precision-bench: random/fp32/1: exit code 1: no luck\n");
  CHECK(o.out.find("random: 1 of 26 runs are finished") != std::string::npos);
  write_file(train, "#!/bin/sh\nexit 75\n");
  fs::permissions(train, fs::perms::owner_all);
  const Outcome stopped = bench.run("run", {"--only", "random/off/*", "--train", train.string()});
  CHECK(stopped.code == 75);
  CHECK(stopped.out.find("random/off/1: stopped; the same command goes on with it") !=
        std::string::npos);
  CHECK(stopped.out.find("random/off/2") == std::string::npos);
}

TEST_CASE("a run that another program has is left to it") {
  const Bench bench;
  const std::vector<Part> parts = {random_part(tiny_model(), kQuickstart / "records.jsonl", 6)};
  Store store(bench.dir.path() / "work");
  const Run run = plan_runs(parts, 1, "random/bf16/1")[0];
  make_folders(store.folder(run));
  const std::string claim = (store.folder(run) / ".claim").string();
  const int holder = open(claim.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(flock(holder, LOCK_EX) == 0);
  const Outcome o = bench.run("run", {"--only", "random/bf16/1"});
  close(holder);
  CHECK(o.code == 75);
  CHECK(o.out.find("random/bf16/1: another program is at it; run the same command again") !=
        std::string::npos);

  // Training by itself, as where the bench was killed a moment ago.
  make_folders(store.folder(run) / "out");
  const std::string lock = (store.folder(run) / "out" / ".lock").string();
  const int trainer = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(flock(trainer, LOCK_EX) == 0);
  const Outcome again = bench.run("run", {"--only", "random/bf16/1"});
  CHECK(again.code == 75);
  CHECK(again.out.find("random/bf16/1: another program is at it") != std::string::npos);
  CHECK(again.err.empty());
  // That is the file which loongforge train holds.
  CHECK(test::run({.words = training_into(store.folder(run) / "out")})
            .err.find("is in use by another run") != std::string::npos);
  close(trainer);
  CHECK(bench.run("run", {"--only", "random/bf16/1"}).code == 0);
}

TEST_CASE("a signal is passed on to training, which is waited for") {
  const Bench bench;
  const fs::path train = bench.dir.path() / "train", said = bench.dir.path() / "said",
                 log = bench.dir.path() / "log";
  write_file(train, "#!/bin/sh\ntrap 'sleep 0.3; echo saved >>\"" + said.string() +
                        "\"; exit 75' TERM\necho started >>'" + said.string() +
                        "'\nwhile [ -e \"$0\" ]; do sleep 0.05; done\n");
  fs::permissions(train, fs::perms::owner_all);
  const auto started = [&] { return fs::exists(said) && read_text(said) == "started\n"; };
  for (const char* action : {"run", "speed"})
    for (const auto& [signal, name] :
         {std::pair{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGHUP, "SIGHUP"}}) {
      remove_tree(said);
      Started program(bench.words(action, {"--only", "random/bf16/*", "--train", train.string()}),
                      log);
      REQUIRE(comes_true(started));
      program.send(signal);
      CHECK(program.wait() == 128 + signal);
      CHECK(read_text(said) == "started\nsaved\n");
      CHECK(read_text(log).ends_with("precision-bench: stopped by " + std::string(name) +
                                     "; run the same command again\n"));
    }
  remove_tree(said);
  Started program(bench.words("run", {"--only", "random/bf16/*", "--train", train.string()}), log,
                  SIGHUP);
  REQUIRE(comes_true(started));
  program.send(SIGHUP);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(read_text(said) == "started\n");  // under nohup
  program.send(SIGTERM);
  CHECK(program.wait() == 128 + SIGTERM);
  CHECK(read_text(said) == "started\nsaved\n");

  // One that does not end: a second SIGINT ends it.
  write_file(train, "#!/bin/sh\ntrap 'echo kept on >>\"" + said.string() +
                        "\"' TERM\necho started >>'" + said.string() +
                        "'\nwhile [ -e \"$0\" ]; do sleep 0.05; done\n");
  fs::permissions(train, fs::perms::owner_all);
  remove_tree(said);
  Started second(bench.words("run", {"--only", "random/bf16/*", "--train", train.string()}), log);
  REQUIRE(comes_true(started));
  second.send(SIGINT);
  REQUIRE(comes_true([&] { return read_text(said) == "started\nkept on\n"; }));
  second.send(SIGINT);
  CHECK(second.wait() == 128 + SIGINT);
}

TEST_CASE(
    "stopped training goes on with the same command at once, and ends as one that was not "
    "stopped") {
  const Bench bench;
  const std::vector<std::string> chosen = {"--only", "random/bf16/1", "--steps",
                                           "60",     "--seeds",       "1"};
  const std::vector<Part> parts = {random_part(tiny_model(), kQuickstart / "records.jsonl", 60)};
  const Run run = plan_runs(parts, 1, "random/bf16/1")[0];
  Store store(bench.dir.path() / "work"), other(bench.dir.path() / "other");
  const fs::path log = store.folder(run) / "train.log";
  Started program(bench.words("run", chosen), bench.dir.path() / "log");
  REQUIRE(comes_true(
      [&] { return fs::exists(log) && read_text(log).find("step 3/60") != std::string::npos; }));
  program.send(SIGTERM);
  CHECK(program.wait() == 128 + SIGTERM);
  CHECK(fs::exists(store.folder(run) / "out" / "latest"));
  CHECK_FALSE(store.find(run));
  const Outcome o = bench.run("run", chosen);
  CHECK_MESSAGE(o.code == 0, o.err);
  CHECK(o.err.empty());
  const std::string text = read_text(log);
  CHECK(text.find("step 3/60") == text.rfind("step 3/60"));  // taken once
  std::string message;
  REQUIRE(other.take(run, {test::program("loongforge-train"), {"--threads", "2"}}, &message) ==
          Ended::kDone);
  REQUIRE(store.find(run));
  CHECK(store.find(run)->loss == other.find(run)->loss);
}

TEST_CASE("wrong options end in one line") {
  const Bench bench;
  const auto ends = [&](const std::vector<std::string>& more, const std::string& line) {
    const Outcome o = bench.run("run", more);
    CHECK(o.code == 2);
    CHECK_MESSAGE(o.err.starts_with("precision-bench: " + line), o.err);
    CHECK(count_of(o.err, "\n") == 1);
    CHECK_FALSE(fs::exists(bench.dir.path() / "work"));
  };
  ends({"--fast"},
       "unknown option --fast; usage: precision-bench run|report|speed [--work FOLDER]");
  ends({"now"}, "unknown argument 'now'; usage: ");
  ends({"--seeds", "0"}, "--seeds takes a whole number from 1 to 1000, not '0'\n");
  ends({"--threads", "x"}, "--threads takes a whole number from 1 to 1024, not 'x'\n");
  ends({"--only"}, "--only takes a value: GLOBS\n");
  ends({"--only", "random/fp9/*"}, "--only random/fp9/* matches no run");
  CHECK(bench.run("rum", {}).err == "precision-bench: 'rum' is none of run, report, speed\n");
  CHECK(bench.run("run", {"--check"}).code == 0);
  CHECK_FALSE(fs::exists(bench.dir.path() / "work"));
}

TEST_CASE("speeds are kept by part and recipe") {
  const TempDir dir;
  CHECK(read_speeds(dir.path()).empty());
  const fs::path train = dir.path() / "train";
  // The third call, the second round of bf16, is the fastest.
  write_file(
      train,
      "#!/bin/sh\ncd \"${0%/*}\"; n=$(cat n 2>/dev/null || echo 0); n=$((n + 1)); echo $n >n\ncase "
      "$n in 3) s=300.5;; *) s=250.5;; esac\n"
      "echo '{\"probe\": {\"tokens_per_s\": '$s', \"step_ms\": 40, \"peak_bytes\": 2097152}}'\n");
  fs::permissions(train, fs::perms::owner_all);
  const std::vector<Part> parts = {random_part("m", "d", 6)};
  measure_speeds(plan_runs(parts, 3, "random/bf16/*,random/off/*"), {train.string(), {}}, 2,
                 dir.path());
  measure_speeds(plan_runs(parts, 1, "random/fp8/*"), {train.string(), {}}, 1, dir.path());
  const auto speeds = read_speeds(dir.path());
  REQUIRE(speeds.at("random").size() == 3);
  CHECK(speeds.at("random").at("off").tokens_per_s == 250.5);
  CHECK(speeds.at("random").at("bf16").tokens_per_s == 300.5);
  CHECK(speeds.at("random").at("off").step_ms == 40);
  CHECK(speeds.at("random").at("fp8").peak_mb == 2);
}

}  // namespace
}  // namespace loongforge::test
