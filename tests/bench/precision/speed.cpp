#include "bench/precision/speed.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/file_ops.h"
#include "bench/precision/program.h"

namespace loongforge::bench {
namespace {

using support::Json;
namespace fs = std::filesystem;

Speed probe(const Run& run, const Program& program, const fs::path& work) {
  const fs::path log = work / "probe.log";
  remove_tree(log);
  std::vector<std::string> words = {program.path,      "--model_path", run.part->model, "--dataset",
                                    run.part->dataset, "--output_dir", work / "probe",  "--dry_run",
                                    "--probe",         "--json",       "--log_level",   "error"};
  for (const std::string& word : run.arguments()) words.push_back(word);
  for (const std::string& word : program.words) words.push_back(word);
  const int code = run_program(words, log);
  if (code != 0)
    throw_failed(log, "the probe of " + run.id() + " ended with exit code " + std::to_string(code));
  const Json json = Json::parse(read_text(log), log.string());
  const Json& found = json.at("probe", log.string());
  Speed speed;
  speed.tokens_per_s = found.at("tokens_per_s").as_double("tokens_per_s");
  speed.step_ms = found.at("step_ms").as_double("step_ms");
  speed.peak_mb = found.at("peak_bytes").as_double("peak_bytes") / (1 << 20);
  return speed;
}

void write_speeds(const std::map<std::string, Speeds>& parts, const fs::path& work) {
  Json json = Json::object();
  for (const auto& [part, speeds] : parts) {
    Json object = Json::object();
    for (const auto& [recipe, speed] : speeds) {
      Json entry = Json::object();
      entry.set("tokens_per_s", speed.tokens_per_s);
      entry.set("step_ms", speed.step_ms);
      entry.set("peak_mb", speed.peak_mb);
      object.set(recipe, std::move(entry));
    }
    json.set(part, std::move(object));
  }
  write_text_atomic(work / "speed.json", json.dump(1) + "\n");
}

}  // namespace

std::map<std::string, Speeds> read_speeds(const fs::path& work) {
  std::map<std::string, Speeds> parts;
  const fs::path file = work / "speed.json";
  if (!fs::exists(file)) return parts;
  const Json json = Json::parse(read_text(file), file.string());
  for (const auto& [part, speeds] : json.as_object(file.string()))
    for (const auto& [recipe, entry] : speeds.as_object(part)) {
      Speed& speed = parts[part][recipe];
      speed.tokens_per_s = entry.at("tokens_per_s", recipe).as_double("tokens_per_s");
      speed.step_ms = entry.at("step_ms", recipe).as_double("step_ms");
      speed.peak_mb = entry.at("peak_mb", recipe).as_double("peak_mb");
    }
  return parts;
}

void measure_speeds(const std::vector<Run>& runs, const Program& program, int64_t rounds,
                    const fs::path& work) {
  std::map<std::pair<std::string, std::string>, std::vector<Speed>> found;
  for (int64_t round = 0; round < rounds; ++round)
    for (const Run& run : runs) {
      std::vector<Speed>& list = found[{run.part->name, run.recipe->name}];
      if (static_cast<int64_t>(list.size()) > round) continue;  // another seed of the same recipe
      list.push_back(probe(run, program, work));
      std::printf("round %lld  %-28s %8.1f tokens/s\n", static_cast<long long>(round + 1),
                  run.id().c_str(), list.back().tokens_per_s);
      std::fflush(stdout);
    }
  std::map<std::string, Speeds> parts = read_speeds(work);
  for (const auto& [name, list] : found)
    parts[name.first][name.second] = *std::max_element(
        list.begin(), list.end(),
        [](const Speed& a, const Speed& b) { return a.tokens_per_s < b.tokens_per_s; });
  write_speeds(parts, work);
}

}  // namespace loongforge::bench
