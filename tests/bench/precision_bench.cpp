// precision-bench run|report|speed --work FOLDER --dataset FILE [options]: --help lists them.
// Whether training in FP8 gives what training in bf16 gives (precision/plan.h says what is run;
// precision.sh makes the models). run: takes the runs that are not finished, goes on with one that
// was stopped, then reports. report: prints the tables of what is finished and draws
// WORK/precision_<part>.svg. speed: measures the tokens/s of the tables, on a quiet machine.
// Stopped by SIGINT, SIGTERM or SIGHUP it waits for its training, which saves: the same command, at
// once, goes on.
// --check: looks at the command line only. Exit code: 0, 1 where a finished bar is missed or a run
// failed, 75 where a run saved and asks to be run again or another program was at one, 128 and the
// signal's number where it was stopped.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "bench/options.h"
#include "bench/precision/curves.h"
#include "bench/precision/plan.h"
#include "bench/precision/speed.h"
#include "bench/precision/store.h"
#include "bench/precision/table.h"

using namespace loongforge;
using namespace loongforge::bench;

namespace {

constexpr int kRunAgain = 75;

struct Options {
  std::string action, work, dataset, smollm2, random, only;
  Program program;
  int64_t seeds = 3, steps = 0, rounds = 3;
  bool check = false;
};

Options parse(const std::vector<std::string>& words) {
  Options o;
  int threads = 0;
  CommandLine("precision-bench")
      .word("run|report|speed", &o.action)
      .text("--work", "FOLDER", &o.work)
      .text("--dataset", "FILE", &o.dataset)
      .text("--smollm2", "MODEL", &o.smollm2)
      .text("--random", "MODEL", &o.random)
      .text("--train", "PROGRAM", &o.program.path)
      .text("--only", "GLOBS", &o.only)
      .number("--seeds", &o.seeds, int64_t{1000})
      .number("--steps", &o.steps)
      .number("--rounds", &o.rounds)
      .threads("--threads", &threads)
      .flag("--check", &o.check)
      .parse(words);
  if (threads > 0) o.program.words = {"--threads", std::to_string(threads)};
  if (o.action != "run" && o.action != "report" && o.action != "speed")
    throw_usage("'" + o.action + "' is none of run, report, speed");
  if (o.work.empty() || o.dataset.empty()) throw_usage("--work and --dataset are needed");
  if (o.smollm2.empty() && o.random.empty()) throw_usage("--smollm2 or --random is needed");
  if (o.program.path.empty() && o.action != "report")
    throw_usage("--train is needed: the path of loongforge-train");
  return o;
}

int report(const Options& o, const std::vector<Part>& parts, Store* store) {
  const std::map<std::string, Speeds> speeds = read_speeds(o.work);
  int code = 0;
  const std::vector<Run> runs = plan_runs(parts, o.seeds, "");
  for (const Part& part : parts) {
    Records records;
    int64_t all = 0, done = 0;
    for (const Run& run : runs) {
      if (run.part != &part) continue;
      ++all;
      auto record = store->find(run);
      if (!record) continue;
      ++done;
      records[run.recipe->name][run.seed] = std::move(*record);
    }
    std::printf("\n%s: %lld of %lld runs are finished\n", part.name.c_str(),
                static_cast<long long>(done), static_cast<long long>(all));
    if (done == 0) continue;
    const std::vector<Row> rows = compare(part, records);
    const auto measured = speeds.find(part.name);
    std::printf(
        "\n%s\n%s",
        main_table(part, rows, measured == speeds.end() ? Speeds() : measured->second).c_str(),
        seed_table(rows).c_str());
    if (const auto verdict = judge(part, rows, o.seeds)) {
      std::printf("\n%s\n", verdict->line.c_str());
      if (!verdict->kept) code = 1;
    }
    const std::string chart = o.work + "/precision_" + part.name + ".svg";
    write_text_atomic(chart, draw_curves(part, records));
    std::printf("curves: %s\n", chart.c_str());
  }
  return code;
}

int take_all(const Options& o, const std::vector<Run>& runs, Store* store) {
  int code = 0;
  for (const Run& run : runs) {
    if (store->find(run)) continue;
    std::printf("%s: %s\n", run.id().c_str(), store->folder(run).c_str());
    std::fflush(stdout);
    std::string message;
    switch (store->take(run, o.program, &message)) {
      case Ended::kDone:
        break;
      case Ended::kBusy:
        std::printf(
            "%s: another program is at it; run the same command again when that has ended\n",
            run.id().c_str());
        if (code == 0) code = kRunAgain;
        break;
      case Ended::kStopped:
        std::printf("%s: stopped; the same command goes on with it\n", run.id().c_str());
        return kRunAgain;
      case Ended::kFailed:
        std::fprintf(stderr, "precision-bench: %s: %s\n", run.id().c_str(), message.c_str());
        code = 1;
    }
  }
  return code;
}

int run(const Options& o) {
  std::vector<Part> parts;
  if (!o.smollm2.empty()) parts.push_back(smollm2_part(o.smollm2, o.dataset, o.steps));
  if (!o.random.empty()) parts.push_back(random_part(o.random, o.dataset, o.steps));
  const std::vector<Run> runs = plan_runs(parts, o.seeds, o.only);
  if (o.check) return 0;
  make_folders(o.work);
  Store store(o.work);
  if (o.action == "speed") {
    measure_speeds(runs, o.program, o.rounds, o.work);
    return 0;
  }
  if (o.action == "run") {
    if (const int code = take_all(o, runs, &store); code != 0) {
      report(o, parts, &store);
      return code;
    }
  }
  return report(o, parts, &store);
}

}  // namespace

int main(int argc, char** argv) {
  return run_main("precision-bench", argc, argv,
                  [](const std::vector<std::string>& words) { return run(parse(words)); });
}
