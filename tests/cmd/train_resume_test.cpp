// What a run that goes on refuses, repairs and tells, as a user meets it.
#include <fstream>

#include "cmd/train_runs.h"

namespace loongforge::test {
namespace {

using Words = std::vector<std::string>;
using support::Json;

TEST_CASE("another base model of the same shape is refused, a copy of it elsewhere is not") {
  const TempDir dir;
  const fs::path model = dir / "copy";
  fs::copy(tiny_model(), model, fs::copy_options::recursive);
  const auto train = [&](const Words& more) {
    Words words = train_words(dir / "out", {"--max_steps", "3", "--save_steps", "2"});
    words[2] = model.string();
    words.insert(words.end(), more.begin(), more.end());
    return run({words});
  };
  REQUIRE(train({}).code == 0);
  const Json state =
      support::read_json((dir / "out" / "checkpoint-2" / "loongforge_state.json").string());
  CHECK(state.at("run").contains("base_model_crc32c"));
  const Words resume = {"--resume_from_checkpoint", (dir / "out" / "checkpoint-2").string()};
  fs::rename(model, dir / "moved");
  fs::create_directory_symlink("moved", model);
  check_says(train(resume), 0, "continued from");
  // The same shape, other weights: what stands for them are their checksums.
  const fs::path other = dir / "other";
  const Outcome o = run({{program("loongforge-convert"), "--input-path", kQuickstart / "tiny_model",
                          "--output-path", other}});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  fs::remove(model);
  fs::create_directory_symlink("other", model);
  check_says(train(resume), 2, "another base model than --model_path names");
  check_says(run({{program("loongforge-train"), "--config", dir / "out" / "run_config.json",
                   "--resume_from_checkpoint", dir / "out" / "checkpoint-2"}}),
             2, "another base model");
}

TEST_CASE(
    "options that decide bits are refused with both values wherever they come from, others are "
    "free") {
  const TempDir dir;
  const Words base = {"--max_steps", "3", "--save_steps", "2", "--fp8_precision", "bf16"};
  REQUIRE(run({train_words(dir / "out", base)}).code == 0);
  const auto resume = [&](const Words& more) {
    Words words = base;
    words.insert(words.end(),
                 {"--resume_from_checkpoint", (dir / "out" / "checkpoint-2").string()});
    words.insert(words.end(), more.begin(), more.end());
    return train_words(dir / "out", words);
  };
  check_says(run({resume({"--learning_rate", "5e-2"})}), 2,
             "another --learning_rate (0.002, now 0.05)");
  check_says(run({resume({"--lr_scheduler_type", "constant"})}), 2,
             "another --lr_scheduler_type (\"cosine\", now \"constant\")");
  check_says(run({resume({"--adapter", (dir / "out" / "latest").string()})}), 2,
             "contains the folder of --adapter");
  Launch environment{resume({})};
  environment.environment["LOONGFORGE_WEIGHT_DECAY"] = "0.5";
  check_says(run(environment), 2, "another --weight_decay (0.0, now 0.5)");
  std::ofstream(dir / "c.json") << R"({"max_grad_norm": 0})";
  check_says(run({resume({"--config", (dir / "c.json").string()})}), 2,
             "another --max_grad_norm (1.0, now 0.0)");
  check_says(run({resume({"--save_total_limit", "5", "--logging_steps", "2", "--report_to", "jsonl",
                          "--threads", "1"})}),
             0, "continued from");
  check_says(run({{program("loongforge-train"), "--config", dir / "out" / "run_config.json",
                   "--resume_from_checkpoint", dir / "out" / "checkpoint-2"}}),
             0, "continued from");
}

TEST_CASE("metrics of steps that are taken again stand once") {
  const TempDir dir;
  const Words words = {"--max_steps", "5",     "--save_steps",       "2",
                       "--report_to", "jsonl", "--save_total_limit", "0"};
  REQUIRE(run({train_words(dir / "out", words)}).code == 0);
  const fs::path metrics = dir / "out" / "metrics.jsonl";
  const auto steps = [&] {
    std::string list;
    for (const Json& record : events(read_text(metrics), "step"))
      list += std::to_string(record.at("step").as_int()) + " ";
    return list;
  };
  std::ofstream(metrics, std::ios::app) << "{\"event\":\"st";  // killed while it wrote
  Words resume = words;
  resume.insert(resume.end(),
                {"--resume_from_checkpoint", (dir / "out" / "checkpoint-2").string()});
  REQUIRE(run({train_words(dir / "out", resume)}).code == 0);
  CHECK(steps() == "1 2 3 4 5 ");
  // Killed before its first checkpoint: the run begins anew.
  for (int step : {2, 4, 5}) fs::remove_all(dir / "out" / ("checkpoint-" + std::to_string(step)));
  resume.back() = "true";
  REQUIRE(run({train_words(dir / "out", resume)}).code == 0);
  CHECK(steps() == "1 2 3 4 5 ");
}

TEST_CASE("a run that was stopped early is said to be over when it is resumed") {
  const TempDir dir;
  const Words words = {"--max_steps",
                       "20",
                       "--eval_steps",
                       "1",
                       "--val_size",
                       "4",
                       "--early_stopping_patience",
                       "1",
                       "--early_stopping_threshold",
                       "1000",
                       "--save_steps",
                       "1"};
  check_says(run({train_words(dir / "out", words)}), 0, "stopped early");
  Words resume = words;
  resume.push_back("--resume_from_checkpoint");
  check_says(run({train_words(dir / "out", resume)}), 0,
             "it was stopped early at step 2 of 20, after 1 evaluation without improvement");
  REQUIRE(run({train_words(dir / "one", {"--max_steps", "1"})}).code == 0);
  check_says(run({train_words(dir / "one", {"--max_steps", "1", "--resume_from_checkpoint"})}), 0,
             "its one step is done");
}

TEST_CASE("a stream whose first records are wrong leaves the folder as it was") {
  const TempDir dir;
  std::ofstream(dir / "bad.jsonl") << "{\"instruction\": 5, \"output\": \"b\"}\n";
  Words words = train_words(dir / "out", {"--streaming", "--max_steps", "2"});
  words.erase(std::find(words.begin(), words.end(), "--max_samples"),
              std::find(words.begin(), words.end(), "--max_samples") + 2);
  REQUIRE(run({words}).code == 0);
  Words anew = words;
  anew[4] = (dir / "bad.jsonl").string();
  anew.push_back("--overwrite_output_dir");
  check_says(run({anew}), 65, "bad.jsonl");
  CHECK(fs::exists(dir / "out" / "checkpoint-2" / "manifest.json"));
  anew[6] = (dir / "fresh").string();
  check_says(run({anew}), 65, "bad.jsonl");
  CHECK_FALSE(fs::exists(dir / "fresh"));
}

TEST_CASE("starting anew takes what the run wrote and says what it will not take") {
  const TempDir dir;
  REQUIRE(run({train_words(dir / "out", {"--max_steps", "2", "--save_steps", "1"})}).code == 0);
  const fs::path out = dir / "out";
  fs::copy(out / "checkpoint-2", out / "checkpoint-2.keep", fs::copy_options::recursive);
  fs::create_directory(out / "checkpoint-7");
  std::ofstream(out / "checkpoint-7" / "notes.txt") << "mine";
  std::ofstream(out / "checkpoint-1" / "notes.txt") << "mine";
  const Words anew = {"--max_steps", "1", "--overwrite_output_dir"};
  check_says(run({train_words(out, anew)}), 2, "checkpoint-1/notes.txt");
  CHECK(fs::exists(out / "checkpoint-2" / "manifest.json"));
  fs::remove(out / "checkpoint-1" / "notes.txt");
  check_says(run({train_words(out, anew)}), 0, "saved");
  CHECK_FALSE(fs::exists(out / "checkpoint-2"));
  CHECK(fs::exists(out / "checkpoint-2.keep" / "manifest.json"));
  CHECK(fs::exists(out / "checkpoint-7" / "notes.txt"));
}

TEST_CASE("a run that fails before its first checkpoint does not speak of one") {
  const TempDir dir;
  const Outcome o =
      run({train_words(dir / "out", {"--learning_rate", "1e20", "--max_nonfinite_steps", "2",
                                     "--max_steps", "30", "--warmup_ratio", "0"})});
  check_says(o, 1, "lower --learning_rate");
  CHECK(o.err.find("intact") == std::string::npos);
}

TEST_CASE("a banner tells no factor that has no effect") {
  const TempDir dir;
  const Outcome o = run({train_words(dir / "out", {"--max_steps", "1", "--fp8_scale_override",
                                                   "*.down_proj.grad=64,*.up_proj.input=2"})});
  check_says(o, 0, "*.down_proj.grad has no effect");
  CHECK(o.err.find("*.down_proj.grad: amax") == std::string::npos);
  CHECK(o.err.find("*.up_proj.input: amax times 2") != std::string::npos);
}

TEST_CASE("chunks of a dataset that is no text are told, from the token cache as well") {
  const TempDir dir;
  const Words words = {"--dry_run", "--text_chunks", "packed", "--tokenized_path",
                       (dir / "cache").string()};
  for (int start = 0; start < 2; ++start)
    check_says(run({train_words(dir / "out", words)}), 0,
               "records.jsonl: --text_chunks has no effect: its records are not text");
}

}  // namespace
}  // namespace loongforge::test
