// Early stopping, the best model, and what other tools read of a run.
#include <fstream>

#include "cmd/train_runs.h"
#include "support/python.h"

namespace loongforge::test {
namespace {

// The tiny model's loss only falls in a few steps: with --greater_is_better the first evaluation is
// the best and each later one is worse. A full fine-tuning at this rate goes up and down.
std::vector<std::string> best_words(const fs::path& output, std::vector<std::string> more) {
  more.insert(more.end(), {"--eval_dataset", kQuickstart / "records_eval.jsonl", "--eval_steps",
                           "2", "--learning_rate", "0.1", "--lr_scheduler_type", "constant"});
  return train_words(output, more);
}

support::Json state_of(const fs::path& folder) {
  return support::read_json((folder / "trainer_state.json").string());
}

std::string eval_only(const std::vector<std::string>& more) {
  std::vector<std::string> words = {program("loongforge-train"),
                                    "--dataset",
                                    kQuickstart / "records_eval.jsonl",
                                    "--eval_only",
                                    "--json",
                                    "--threads",
                                    "1"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome o = run({words});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  return support::Json::parse(o.out, "stdout").at("eval_loss").dump();
}

TEST_CASE("the final model is that of the best evaluation, kept whatever the limit") {
  for (const bool full : {false, true}) {
    const TempDir dir;
    std::vector<std::string> more = {"--max_steps", "20", "--load_best_model_at_end"};
    if (full)
      more.insert(more.end(), {"--finetuning_type", "full"});
    else
      more.push_back("--greater_is_better");
    const Outcome o = run({best_words(dir / "out", more)});
    REQUIRE_MESSAGE(o.code == 0, o.err);
    const support::Json state = state_of(dir / "out");
    const int64_t best = state.at("best_global_step").as_int();
    double sought = full ? 1e9 : 0;
    int64_t at = 0;
    for (const support::Json& e : events(o.err, "eval"))
      if (const double loss = e.at("eval_loss").as_double();
          e.at("step").as_int() > 0 && (full ? loss < sought : loss > sought)) {
        sought = loss;
        at = e.at("step").as_int();
      }
    CHECK(best == at);
    CHECK(best < 18);  // beyond the two newest
    const std::string name = "checkpoint-" + std::to_string(best);
    CHECK(state.at("best_model_checkpoint").as_string() == name);
    CHECK(fs::read_symlink(dir / "out" / "final") == name);
    CHECK(fs::read_symlink(dir / "out" / "best") == name);
    CHECK(fs::read_symlink(dir / "out" / "latest") == "checkpoint-20");
    CHECK(read_text(dir / "out" / "trainer_state.json") ==
          read_text(dir / "out" / "latest" / "trainer_state.json"));
    // It is the model of that evaluation, to the bit.
    const fs::path final_model = dir / "out" / "final";
    CHECK(state.at("best_metric").dump() ==
          (full ? eval_only({"--model_path", final_model})
                : eval_only({"--model_path", tiny_model(), "--adapter", final_model})));
  }
}

TEST_CASE("a run stops early, resumed anywhere at the same step and with the same bytes") {
  const TempDir dir;
  const std::vector<std::string> more = {"--max_steps",
                                         "40",
                                         "--early_stopping_patience",
                                         "3",
                                         "--greater_is_better",
                                         "--load_best_model_at_end",
                                         "--save_total_limit",
                                         "0"};
  const Outcome whole = run({best_words(dir / "whole", more)});
  REQUIRE_MESSAGE(whole.code == 0, whole.err);
  CHECK(whole.err.find("stopped early: 3 evaluations without improvement") != std::string::npos);
  const support::Json state = state_of(dir / "whole");
  const int64_t end = state.at("global_step").as_int();
  CHECK(end < 40);
  CHECK(state.at("best_global_step").as_int() == end - 6);
  const std::string last = "checkpoint-" + std::to_string(end);
  for (const int64_t from : {end - 2, end - 4}) {
    const fs::path out = dir / ("cut" + std::to_string(from));
    fs::create_directory(out);
    for (int64_t step = 2; step <= from; step += 2) {
      const std::string name = "checkpoint-" + std::to_string(step);
      fs::copy(dir / "whole" / name, out / name, fs::copy_options::recursive);
    }
    std::vector<std::string> resume = more;
    resume.push_back("--resume_from_checkpoint");
    const Outcome rest = run({best_words(out, resume)});
    REQUIRE_MESSAGE(rest.code == 0, rest.err);
    check_same_folder(dir / "whole" / last, out / last);
    CHECK(fs::read_symlink(out / "final") == fs::read_symlink(dir / "whole" / "final"));
  }
  // One that has stopped stays so.
  std::vector<std::string> again = more;
  again.push_back("--resume_from_checkpoint");
  const Outcome o = run({best_words(dir / "whole", again)});
  CHECK(o.code == 0);
  CHECK(events(o.err, "step").empty());
}

TEST_CASE(
    "a run that saves and is resumed from its configuration keeps the strategies that follow from "
    "evaluation") {
  const TempDir dir;
  const Outcome first =
      run({best_words(dir / "out", {"--max_steps", "4", "--load_best_model_at_end"})});
  REQUIRE_MESSAGE(first.code == 0, first.err);
  fs::remove_all(dir / "out" / "checkpoint-4");
  const Outcome o = run({{program("loongforge-train"), "--config", dir / "out" / "run_config.json",
                          "--resume_from_checkpoint"}});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  CHECK(fs::exists(dir / "out" / "checkpoint-4" / "manifest.json"));
}

TEST_CASE("a best checkpoint that is damaged when the run ends is named") {
  const TempDir dir;
  REQUIRE(run({best_words(dir / "out", {"--max_steps", "12", "--load_best_model_at_end",
                                        "--greater_is_better"})})
              .code == 0);
  fs::resize_file(dir / "out" / "final" / "adapter_model.safetensors", 10);
  const Outcome o =
      run({best_words(dir / "out", {"--max_steps", "12", "--load_best_model_at_end",
                                    "--greater_is_better", "--resume_from_checkpoint"})});
  CHECK(o.code == 65);
  CHECK(o.err.find("adapter_model.safetensors: has 10 bytes") != std::string::npos);
}

TEST_CASE("prompts are answered by the best model at the end") {
  const TempDir dir;
  std::ofstream(dir / "prompts.txt") << "What is LoongArch?\n";
  const Outcome o = run({best_words(
      dir / "out", {"--max_steps", "12", "--load_best_model_at_end", "--greater_is_better",
                    "--sample_prompts", dir / "prompts.txt", "--sample_max_new_tokens", "8"})});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  const Outcome alone = run({{program("loongforge-train"), "--model_path", tiny_model(),
                              "--adapter", dir / "out" / "final", "--eval_only", "--sample_prompts",
                              dir / "prompts.txt", "--sample_max_new_tokens", "8"}});
  REQUIRE_MESSAGE(alone.code == 0, alone.err);
  CHECK(o.out.ends_with(alone.out));
}

TEST_CASE("transformers and TensorBoard read what a run leaves") {
  const TempDir dir;
  const Outcome o = run({best_words(dir / "out", {"--max_steps", "4", "--early_stopping_patience",
                                                  "2", "--report_to", "tensorboard,jsonl"})});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  const std::string metrics = read_text(dir / "out" / "metrics.jsonl");
  CHECK(std::count(metrics.begin(), metrics.end(), '\n') == 7);
  const auto steps = events(o.err, "step");
  if (const std::string python = python_with("transformers"); !python.empty()) {
    const Outcome said =
        run({{python, "-c",
              "import sys\n"
              "from transformers.trainer_callback import TrainerState\n"
              "s = TrainerState.load_from_json(sys.argv[1])\n"
              "print([h['loss'] for h in s.log_history if 'loss' in h])\n"
              "print([h['step'] for h in s.log_history if 'eval_loss' in h], s.global_step)\n",
              dir / "out" / "trainer_state.json"}});
    REQUIRE_MESSAGE(said.code == 0, said.err);
    std::string losses = "[";
    for (const auto& step : steps)
      losses += (losses.size() > 1 ? ", " : "") + step.at("loss").dump();
    CHECK(said.out == losses + "]\n[0, 2, 4] 4\n");
  }
  if (const std::string python = python_with("tensorboard"); !python.empty()) {
    const Outcome said = run(
        {{python, "-c",
          "import sys\n"
          "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
          "a = EventAccumulator(sys.argv[1]); a.Reload()\n"
          "print([e.step for e in a.Scalars('train/loss')], [e.step for e in "
          "a.Scalars('eval/loss')])\n",
          dir / "out" / "runs"}});
    CHECK_MESSAGE(said.out == "[1, 2, 3, 4] [0, 2, 4]\n", said.err);
  }
}

}  // namespace
}  // namespace loongforge::test
