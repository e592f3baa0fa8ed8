// Training as a user does it, on the tiny model that the repository carries: convert, train,
// resume, stop, evaluate.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "cmd/train_runs.h"

namespace loongforge::test {
namespace {

TEST_CASE("a run lowers the loss and leaves a PEFT folder") {
  const TempDir dir;
  const Outcome o = run({train_words(dir / "out", {"--max_steps", "12", "--report_to", "jsonl"})});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  const auto steps = events(o.err, "step");
  REQUIRE(steps.size() == 12);
  CHECK(steps.back().at("loss").as_double() < steps.front().at("loss").as_double());
  for (const char* key :
       {"step", "loss", "lr", "grad_norm", "tokens_per_s", "step_ms", "mem_mb", "fp8_overflow"})
    CHECK(steps[0].contains(key));
  for (const char* file :
       {"adapter_config.json", "adapter_model.safetensors", "trainer_state.json", "manifest.json"})
    CHECK(fs::exists(dir / "out" / "checkpoint-12" / file));
  CHECK(fs::exists(dir / "out" / "latest" / "adapter_model.safetensors"));
  CHECK(fs::read_symlink(dir / "out" / "final") == "checkpoint-12");
  CHECK(fs::exists(dir / "out" / "run_config.json"));
  const std::string metrics = read_text(dir / "out" / "metrics.jsonl");
  CHECK(std::count(metrics.begin(), metrics.end(), '\n') == 12);
}

TEST_CASE("resuming gives the bytes of a run that was never stopped") {
  for (const std::vector<std::string>& kind :
       {std::vector<std::string>{"--lora_dropout", "0.1"},
        std::vector<std::string>{"--finetuning_type", "full"}}) {
    const TempDir dir;
    std::vector<std::string> words = {"--max_steps",        "8", "--save_steps", "3",
                                      "--save_total_limit", "5"};
    words.insert(words.end(), kind.begin(), kind.end());
    const Outcome whole = run({train_words(dir / "whole", words)});
    REQUIRE_MESSAGE(whole.code == 0, whole.err);
    fs::create_directory(dir / "cut");
    fs::copy(dir / "whole" / "checkpoint-3", dir / "cut" / "checkpoint-3",
             fs::copy_options::recursive);
    words.push_back("--resume_from_checkpoint");
    const Outcome rest = run({train_words(dir / "cut", words)});
    REQUIRE_MESSAGE(rest.code == 0, rest.err);
    CHECK(events(rest.err, "step").size() == 5);
    check_same_folder(dir / "whole" / "checkpoint-8", dir / "cut" / "checkpoint-8");
  }
}

TEST_CASE("SIGTERM saves and asks to be requeued; the continued run ends as an undisturbed one") {
  const TempDir dir;
  const std::vector<std::string> more = {"--max_steps", "60"};
  const fs::path log = dir / "log";
  const pid_t child = fork();
  if (child == 0) {
    const int fd = ::open(log.c_str(), O_CREAT | O_WRONLY, 0644);
    ::dup2(fd, STDERR_FILENO);
    std::vector<std::string> words = train_words(dir / "out", more);
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    _exit(127);
  }
  for (int i = 0; i < 600; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (fs::exists(log) && !events(read_text(log), "step").empty()) break;
  }
  ::kill(child, SIGTERM);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 75);
  REQUIRE(fs::exists(dir / "out" / "latest" / "manifest.json"));

  std::vector<std::string> resume = more;
  resume.push_back("--resume_from_checkpoint");
  const Outcome rest = run({train_words(dir / "out", resume)});
  REQUIRE_MESSAGE(rest.code == 0, rest.err);
  const Outcome whole = run({train_words(dir / "whole", more)});
  REQUIRE(whole.code == 0);
  check_same_folder(dir / "whole" / "checkpoint-60", dir / "out" / "checkpoint-60");
}

TEST_CASE("evaluation is the same for every batch size and precision") {
  for (const char* precision : {"fp32", "bf16", "e4m3"}) {
    std::vector<std::string> words = {program("loongforge-train"),
                                      "--model_path",
                                      tiny_model(),
                                      "--dataset",
                                      kQuickstart / "records_eval.jsonl",
                                      "--eval_only",
                                      "--json",
                                      "--fp8_precision",
                                      precision};
    const Outcome one = run({words});
    REQUIRE_MESSAGE(one.code == 0, one.err);
    const support::Json result = support::Json::parse(one.out, "stdout");
    CHECK(result.at("tokens").as_int() > 100);
    CHECK(result.at("perplexity").as_double() > 1);
    words.insert(words.end(), {"--per_device_eval_batch_size", "8"});
    CHECK(run({words}).out == one.out);
  }
}

TEST_CASE("--dry-run predicts and writes nothing; --preview shows samples") {
  const TempDir dir;
  const Outcome dry = run({train_words(dir / "out", {"--dry-run", "--json"})});
  REQUIRE_MESSAGE(dry.code == 0, dry.err);
  const support::Json plan = support::Json::parse(dry.out, "stdout");
  CHECK(plan.at("trainable").as_int() > 0);
  CHECK(plan.at("memory_bytes").at("peak").as_int() > 0);
  CHECK_FALSE(fs::exists(dir / "out"));
  const Outcome probe =
      run({train_words(dir / "out", {"--dry-run", "--probe", "--json", "--max_steps", "3"})});
  REQUIRE_MESSAGE(probe.code == 0, probe.err);
  CHECK(support::Json::parse(probe.out, "stdout").at("probe").at("steps").as_int() == 2);
  CHECK(run({train_words(dir / "out", {"--probe"})}).code == 2);
  CHECK_FALSE(fs::exists(dir / "out"));
  const Outcome preview = run({train_words(dir / "out", {"--preview", "2"})});
  REQUIRE_MESSAGE(preview.code == 0, preview.err);
  CHECK(preview.out.find("[[") != std::string::npos);
  CHECK_FALSE(fs::exists(dir / "out"));
}

TEST_CASE("an output folder that holds a run, or is in use, is not touched") {
  const TempDir dir;
  REQUIRE(run({train_words(dir / "out", {"--max_steps", "1"})}).code == 0);
  const Outcome again = run({train_words(dir / "out", {"--max_steps", "1"})});
  CHECK(again.code == 2);
  CHECK(again.err.find("already holds a run") != std::string::npos);
  // To look at it is no run.
  const Outcome dry = run(
      {{program("loongforge-train"), "--config", dir / "out" / "run_config.json", "--dry_run"}});
  CHECK_MESSAGE(dry.code == 0, dry.err);
  CHECK(run({train_words(dir / "out", {"--max_steps", "1", "--overwrite_output_dir"})}).code == 0);
  const Outcome other = run(
      {train_words(dir / "out", {"--max_steps", "1", "--seed", "7", "--resume_from_checkpoint"})});
  CHECK(other.code == 2);
  CHECK(other.err.find("another --seed (42, now 7)") != std::string::npos);
}

TEST_CASE("a run that is refused leaves nothing behind, whatever is wrong") {
  const TempDir dir;
  std::ofstream(dir / "file") << "x";
  struct Refusal {
    std::vector<std::string> words;
    int code;
    const char* says;
  };
  for (const Refusal& r :
       {Refusal{{"--sample_prompts", dir / "absent.txt"}, 66, "absent.txt"},
        Refusal{{"--lora_target", "query"}, 2, "--lora_target query names no linear layer"},
        Refusal{{"--adapter", dir / "absent"}, 66, "absent"},
        Refusal{{"--resume_from_checkpoint", dir / "absent"}, 66, "is no checkpoint folder"}}) {
    const Outcome o = run({train_words(dir / "out", r.words)});
    CAPTURE(o.err);
    CHECK(o.code == r.code);
    CHECK(o.err.find(r.says) != std::string::npos);
    CHECK_FALSE(fs::exists(dir / "out"));
  }
  const Outcome file = run({train_words(dir / "file", {})});
  CHECK(file.code == 2);
  CHECK(file.err.find("is no folder") != std::string::npos);
  CHECK(std::count(file.err.begin(), file.err.end(), '\n') == 1);
}

TEST_CASE("prompts without an evaluation are answered at the end") {
  const TempDir dir;
  std::ofstream(dir / "prompts.txt") << "What is LoongArch?\n";
  const Outcome o =
      run({train_words(dir / "out", {"--max_steps", "1", "--sample_prompts", dir / "prompts.txt",
                                     "--sample_max_new_tokens", "5"})});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  CHECK(o.out.starts_with("step 1 of 1\nprompt: What is LoongArch?\nanswer: "));
}

TEST_CASE(
    "drawn answers are the same text on every ISA and thread count, another seed draws others") {
  const TempDir dir;
  std::ofstream(dir / "prompts.txt") << "What is LoongArch?\nWhat is LoongArch?\n";
  std::vector<std::string> words = {program("loongforge-train"),
                                    "--model_path",
                                    tiny_model(),
                                    "--eval_only",
                                    "--sample_prompts",
                                    dir / "prompts.txt",
                                    "--sample_max_new_tokens",
                                    "20",
                                    "--sample_temperature",
                                    "1.2",
                                    "--sample_top_p",
                                    "0.95",
                                    "--sample_top_k",
                                    "200",
                                    "--json"};
  const auto answers = [&](const char* threads, const char* isa, const char* seed) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--threads", threads, "--seed", seed});
    Launch launch{all};
    if (*isa != '\0') launch.environment["LOONGFORGE_ISA"] = isa;
    const Outcome o = run(launch);
    REQUIRE_MESSAGE(o.code == 0, o.err);
    return o.out;
  };
  const std::string one = answers("1", "scalar", "42");
  CHECK(answers("2", "", "42") == one);
  CHECK(answers("2", "scalar", "7") != one);
  // The same prompt twice: two draws.
  const support::Json samples = support::Json::parse(one, "stdout").at("samples");
  REQUIRE(samples.as_array().size() == 2);
  CHECK(samples.as_array()[0].at("answer").as_string() !=
        samples.as_array()[1].at("answer").as_string());
}

TEST_CASE("a run that refuses a folder in use leaves the other run's lock and checkpoints alone") {
  const TempDir dir;
  REQUIRE(run({train_words(dir / "out", {"--max_steps", "1"})}).code == 0);
  const int lock = ::open((dir / "out" / ".lock").c_str(), O_RDWR);
  REQUIRE(::flock(lock, LOCK_EX | LOCK_NB) == 0);
  const Outcome o = run({train_words(dir / "out", {"--max_steps", "1", "--overwrite_output_dir"})});
  CHECK(o.code == 2);
  CHECK(o.err.find("is in use by another run") != std::string::npos);
  CHECK(fs::exists(dir / "out" / ".lock"));
  CHECK(fs::exists(dir / "out" / "latest" / "manifest.json"));
  ::close(lock);
}

TEST_CASE("metrics that cannot be written end the run") {
  const TempDir dir;
  fs::create_directories(dir / "out" / "metrics.jsonl");  // a folder stands in the way
  const Outcome o = run({train_words(dir / "out", {"--max_steps", "1", "--report_to", "jsonl"})});
  CHECK(o.code == 1);
  CHECK(o.err.find("metrics.jsonl") != std::string::npos);
}

TEST_CASE("dataset faults name file and line, and nothing is written") {
  const TempDir dir;
  struct Fault {
    const char* text;
    const char* says;
  };
  const std::string good = "{\"instruction\": \"a\", \"output\": \"b\"}\n";
  for (const Fault& f : {Fault{"{\"instruction\": \"a\", \"output\": \"b\"", ":2"},
                         Fault{"{\"instruction\": 5, \"output\": \"b\"}\n", ":2"},
                         Fault{"{\"output\": \"b\"}\n", "instruction"},
                         Fault{"{\"instruction\": \"a\", \"output\": \"\"}\n", ":2"}}) {
    std::ofstream(dir / "data.jsonl") << good << f.text;
    std::vector<std::string> words = train_words(dir / "out", {});
    *(std::find(words.begin(), words.end(), "--dataset") + 1) = (dir / "data.jsonl").string();
    const Outcome o = run({words});
    CAPTURE(o.err);
    CHECK(o.code == 65);
    CHECK(o.err.find("data.jsonl") != std::string::npos);
    CHECK(o.err.find(f.says) != std::string::npos);
    CHECK_FALSE(fs::exists(dir / "out"));
  }
}

}  // namespace
}  // namespace loongforge::test
