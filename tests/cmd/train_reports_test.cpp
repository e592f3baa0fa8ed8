// What a user is told: results as one object, warnings of one line, and messages that say what to
// do.
#include <fstream>

#include "cmd/train_runs.h"

namespace loongforge::test {
namespace {

using Words = std::vector<std::string>;
using support::Json;

TEST_CASE("--json: whatever the command does, its standard output is one object") {
  const TempDir dir;
  std::ofstream(dir / "prompts.txt") << "What is LoongArch?\nWhat is FP8?\n";
  const Words samples = {"--sample_prompts", dir / "prompts.txt", "--sample_max_new_tokens", "3"};
  Words words = {"--max_steps", "4",           "--eval_steps",
                 "2",           "--val_size",  "4",
                 "--json",      "--fp8_stats", "--load_best_model_at_end"};
  words.insert(words.end(), samples.begin(), samples.end());
  const Outcome o = run({train_words(dir / "out", words)});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  const Json result = Json::parse(o.out, "stdout");
  CHECK(result.at("finished").as_bool());
  CHECK(result.at("step").as_int() == 4);
  CHECK(result.at("total_steps").as_int() == 4);
  CHECK(result.at("tokens").as_int() > 100);
  for (const char* key : {"loss", "eval_loss", "perplexity", "best_eval_loss"})
    CHECK(result.at(key).as_double() > 0);
  CHECK(fs::exists(result.at("final").as_string()));
  CHECK(fs::equivalent(result.at("latest").as_string(), dir / "out" / "latest"));
  CHECK(result.at("fp8_stats").contains("model.layers.0.mlp.down_proj.input"));
  CHECK(result.at("samples").as_array().size() >= 6);  // two prompts at steps 0, 2 and 4
  CHECK(result.at("samples").as_array()[2].at("step").as_int() == 2);
  CHECK(result.at("samples").as_array()[2].at("prompt").as_string() == "What is LoongArch?");

  Words evaluate = {program("loongforge-train"),
                    "--model_path",
                    tiny_model(),
                    "--eval_only",
                    "--json",
                    "--dataset",
                    kQuickstart / "records_eval.jsonl"};
  evaluate.insert(evaluate.end(), samples.begin(), samples.end());
  const Json loss = Json::parse(run({evaluate}).out, "stdout");
  CHECK(loss.at("eval_loss").as_double() > 0);
  CHECK(loss.at("samples").as_array().size() == 2);

  const Json preview =
      Json::parse(run({train_words(dir / "no", {"--preview", "2", "--json"})}).out, "stdout");
  REQUIRE(preview.at("samples").as_array().size() == 2);
  const Json& first = preview.at("samples").as_array()[0];
  CHECK(first.at("line").as_int() == 1);
  CHECK(first.at("file").as_string() == kQuickstart / "records.jsonl");
  CHECK(first.at("parts").as_array().size() >= 2);
}

TEST_CASE("samples in the text of a run name their step") {
  const TempDir dir;
  std::ofstream(dir / "prompts.txt") << "What is LoongArch?\n";
  const Outcome o = run({train_words(
      dir / "out", {"--max_steps", "4", "--eval_strategy", "steps", "--eval_steps", "2",
                    "--sample_prompts", dir / "prompts.txt", "--sample_max_new_tokens", "3"})});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  for (const char* step : {"step 2 of 4\nprompt: ", "step 4 of 4\nprompt: "})
    CHECK(o.out.find(step) != std::string::npos);
}

TEST_CASE(
    "a preview names each record's file, and counts records of an array and lines of the others") {
  const TempDir dir;
  std::ofstream(dir / "a.json") << R"([{"instruction":"i","output":"o"},
{"instruction":"j","output":"p"}])";
  std::ofstream(dir / "b.txt") << "one\n\n\ntwo\n";
  Words words = train_words(dir / "out", {"--preview", "9"});
  words[4] = (dir / "a.json").string() + "," + (dir / "b.txt").string();
  const Outcome o = run({words});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  CHECK(o.out.starts_with("what is learnt stands in [[ ]]\n"));
  for (const char* place :
       {"a.json record 1: ", "a.json record 2: ", "b.txt line 1: ", "b.txt line 4: "})
    CHECK_MESSAGE(o.out.find(place) != std::string::npos, o.out);
}

TEST_CASE("tools that the model's chat template leaves out end the run, in either format") {
  const TempDir dir;
  std::ofstream(dir / "s.jsonl")
      << R"({"conversations":[{"from":"human","value":"q"},)"
         R"({"from":"function_call","value":"{\"name\":\"f\",\"arguments\":{}}"},)"
         R"({"from":"observation","value":"7"},{"from":"gpt","value":"a"}],)"
         R"("tools":"[{\"name\":\"f\",\"parameters\":{}}]"})"
      << "\n";
  std::ofstream(dir / "m.jsonl")
      << R"({"messages":[{"role":"user","content":"q"},)"
         R"({"role":"assistant","content":null,"tool_calls":[{"name":"f"}]}]})"
      << "\n";
  for (const char* name : {"s.jsonl", "m.jsonl"}) {
    Words words = train_words(dir / "out", {});
    words[4] = dir / name;
    check_says(run({words}), 65, std::string(name) + ":1: the chat template leaves out the tool");
    CHECK_FALSE(fs::exists(dir / "out"));
  }
}

TEST_CASE(
    "an adapter goes on as it is: what is said otherwise is refused, at a start and at a resumed "
    "one") {
  const TempDir dir;
  REQUIRE(run({train_words(dir / "out", {"--max_steps", "2", "--lora_rank", "4", "--lora_target",
                                         "q_proj,v_proj"})})
              .code == 0);
  const std::string adapter = dir / "out" / "latest";
  const auto start = [&](Words more) {
    more.insert(more.begin(), {"--max_steps", "1", "--adapter", adapter});
    return run({train_words(dir / "next", more)});
  };
  check_says(start({"--lora_rank", "16"}), 2,
             "--lora_rank 16 contradicts the adapter " + adapter + ", which has 4");
  check_says(start({"--lora_alpha", "3"}), 2, "--lora_alpha 3");
  check_says(start({"--use_rslora"}), 2, "--use_rslora true contradicts the adapter");
  check_says(start({"--lora_target", "q_proj"}), 2, "which has q_proj,v_proj");
  CHECK_FALSE(fs::exists(dir / "next"));
  CHECK(start({"--lora_rank", "4", "--lora_target", "v_proj,q_proj"}).code == 0);
  check_says(
      run({train_words(dir / "out", {"--max_steps", "2", "--lora_rank", "16", "--lora_target",
                                     "q_proj,v_proj", "--resume_from_checkpoint"})}),
      2, "--lora_rank 16 contradicts the adapter");
  // A run's folder with one checkpoint is that adapter; run_config.json has what it has, and not
  // what the options would make.
  const Outcome next =
      run({train_words(dir / "next2", {"--max_steps", "1", "--adapter", dir / "out"})});
  REQUIRE_MESSAGE(next.code == 0, next.err);
  const Json config = support::read_json((dir / "next2" / "run_config.json").string());
  CHECK(config.at("lora_rank").as_int() == 4);
  CHECK(config.at("lora_target").dump() == R"(["q_proj","v_proj"])");
  Launch rank{train_words(dir / "next3", {"--max_steps", "1", "--adapter", adapter})};
  rank.environment["LOONGFORGE_LORA_RANK"] = "16";
  check_says(run(rank), 2, "--lora_rank 16 contradicts the adapter");
}

TEST_CASE("what resuming finds is told: the end, other options, damage") {
  const TempDir dir;
  const Words more = {"--max_steps", "2", "--save_steps", "1"};
  REQUIRE(run({train_words(dir / "out", more)}).code == 0);
  Words resume = more;
  resume.push_back("--resume_from_checkpoint");
  check_says(run({train_words(dir / "out", resume)}), 0,
             "checkpoint-2 is the end of the run: all 2 steps are done");
  resume[1] = "3";
  check_says(run({train_words(dir / "out", resume)}), 2,
             "another number of steps (--max_steps, --num_train_epochs");
  for (const char* name : {"checkpoint-1", "checkpoint-2"})
    fs::resize_file(dir / "out" / name / "optimizer.safetensors", 9);
  resume[1] = "2";
  check_says(run({train_words(dir / "out", resume)}), 65,
             "holds no checkpoint that is whole; name another");
  CHECK(fs::file_size(dir / "out" / "checkpoint-1" / "optimizer.safetensors") ==
        9);  // they are left alone
}

TEST_CASE("samples and answers beyond what the model was made for are told in one line") {
  const TempDir dir;
  std::ofstream text(dir / "long.txt");
  for (int i = 0; i < 4000; ++i) text << "word" << i << ' ';
  text.close();
  Words words = train_words(dir / "out", {"--cutoff_len", "2000", "--max_steps", "1", "--dry_run"});
  words[4] = dir / "long.txt";
  check_says(run({words}), 0,
             "samples have up to 2000 tokens, more than the 1024 that the model was made for");
  words.insert(words.end(), {"--cutoff_len", "1000"});
  CHECK(run({words}).err.find("was made for") == std::string::npos);
  std::ofstream(dir / "prompts.txt") << "What is LoongArch?\n";
  check_says(run({{program("loongforge-train"), "--model_path", tiny_model(), "--eval_only",
                   "--sample_prompts", dir / "prompts.txt", "--sample_max_new_tokens", "1030",
                   "--dry_run=false"}}),
             0, "--sample_max_new_tokens 1030 reach beyond the 1024 tokens");
}

TEST_CASE("a variable that sets nothing but looks like one is told") {
  const Outcome o = run({{program("loongforge-train"), "--model_path", tiny_model(), "--dataset",
                          kQuickstart / "records.jsonl", "--dry_run"},
                         {{"LOONGFORGE_MAX_STEPZ", "3"}}});
  check_says(o, 0, "LOONGFORGE_MAX_STEPZ sets nothing; did you mean LOONGFORGE_MAX_STEPS?");
}

}  // namespace
}  // namespace loongforge::test
