// What a run says of its loss: every trained-on token counts the same, however the samples are cut
// into micro-batches and steps.
#include <cmath>
#include <fstream>

#include "cmd/train_runs.h"

namespace loongforge::test {
namespace {

std::vector<std::string> fp32_words(const fs::path& dataset, const fs::path& output,
                                    std::vector<std::string> more) {
  std::vector<std::string> words = {program("loongforge-train"),
                                    "--model_path",
                                    tiny_model(),
                                    "--dataset",
                                    dataset,
                                    "--output_dir",
                                    output,
                                    "--fp8_precision",
                                    "fp32",
                                    "--log-format",
                                    "json",
                                    "--lr_scheduler_type",
                                    "constant"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The first n records of the quick start, their answers of unequal lengths.
std::vector<std::string> records(size_t n) {
  std::ifstream in(kQuickstart / "records.jsonl");
  std::vector<std::string> lines;
  for (std::string line; lines.size() < n && std::getline(in, line);) lines.push_back(line);
  return lines;
}

fs::path write_records(const fs::path& path, const std::vector<std::string>& lines) {
  std::ofstream out(path);
  for (const std::string& line : lines) out << line << "\n";
  return path;
}

TEST_CASE("16 x 1, 2 x 8 and 8 x 2 report the same loss and gradient norm to 1e-5 in fp32") {
  const TempDir dir;
  const fs::path data = write_records(dir / "data.jsonl", records(16));
  std::vector<std::vector<support::Json>> runs;
  for (const auto& [rows, accumulation] :
       {std::pair{"1", "16"}, {"8", "2"}, {"2", "8"}, {"16", "1"}}) {
    const Outcome o =
        run({fp32_words(data, dir / rows,
                        {"--per_device_train_batch_size", rows, "--gradient_accumulation_steps",
                         accumulation, "--num_train_epochs", "3", "--learning_rate", "1e-3"})});
    REQUIRE_MESSAGE(o.code == 0, o.err);
    runs.push_back(events(o.err, "step"));
    REQUIRE(runs.back().size() == 3);
  }
  for (size_t r = 1; r < runs.size(); ++r)
    for (size_t s = 0; s < 3; ++s)
      for (const char* key : {"loss", "grad_norm"}) {
        CAPTURE(key);
        CHECK(std::abs(runs[r][s].at(key).as_double() / runs[0][s].at(key).as_double() - 1) < 1e-5);
      }
}

TEST_CASE("the last incomplete accumulation of an epoch is applied, weighted by its tokens") {
  const TempDir dir;
  const std::vector<std::string> lines = records(5);
  // One step of four samples, one of the fifth; a learning rate that changes bits and no loss.
  const Outcome o = run({fp32_words(
      write_records(dir / "data.jsonl", lines), dir / "out",
      {"--gradient_accumulation_steps", "4", "--learning_rate", "1e-9", "--save_steps", "1"})});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  const auto steps = events(o.err, "step");
  REQUIRE(steps.size() == 2);
  CHECK(steps[1].at("epoch").as_double() == 1);
  CHECK(steps[1].at("lr").as_double() == 1e-9);
  double total = 0, tokens = 0;
  std::vector<std::pair<double, double>> alone;  // loss, tokens of each sample
  for (const std::string& line : lines) {
    const Outcome e = run({{program("loongforge-train"), "--model_path", tiny_model(), "--dataset",
                            write_records(dir / "one.jsonl", {line}), "--eval_only", "--json",
                            "--fp8_precision", "fp32"}});
    REQUIRE_MESSAGE(e.code == 0, e.err);
    const support::Json json = support::Json::parse(e.out, "stdout");
    alone.emplace_back(json.at("eval_loss").as_double(), json.at("tokens").as_double());
    total += alone.back().first * alone.back().second;
    tokens += alone.back().second;
  }
  const double last = steps[1].at("loss").as_double();
  const auto fifth =
      std::min_element(alone.begin(), alone.end(), [&](const auto& a, const auto& b) {
        return std::abs(a.first - last) < std::abs(b.first - last);
      });
  CHECK(std::abs(fifth->first / last - 1) < 1e-5);
  const double others = (total - fifth->first * fifth->second) / (tokens - fifth->second);
  CHECK(std::abs(steps[0].at("loss").as_double() / others - 1) < 1e-5);
  CHECK(read_text(dir / "out" / "checkpoint-1" / "adapter_model.safetensors") !=
        read_text(dir / "out" / "checkpoint-2" / "adapter_model.safetensors"));
}

}  // namespace
}  // namespace loongforge::test
