// What a user mistypes, as a black box: exit code, one line on standard error that names the fault,
// nothing written.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "support/program.h"
#include "support/temp_dir.h"

namespace loongforge::test {
namespace {

struct Attempt {
  const char* command;
  std::vector<std::string> words;
  int code;
  const char* says;  // part of the line
};

void check(const Attempt& attempt, const std::map<std::string, std::string>& environment = {}) {
  Launch launch{{program(std::string("loongforge-") + attempt.command)}, environment};
  launch.words.insert(launch.words.end(), attempt.words.begin(), attempt.words.end());
  const Outcome outcome = run(launch);
  std::string shown = attempt.command;
  for (const std::string& word : attempt.words) shown += " " + word;
  CAPTURE(shown);
  CAPTURE(outcome.err);
  CHECK(outcome.code == attempt.code);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.starts_with(std::string("loongforge ") + attempt.command + ": "));
  CHECK(outcome.err.find(attempt.says) != std::string::npos);
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

TEST_CASE("-h fits 80 columns where no terminal says otherwise") {
  for (const char* command :
       {"loongforge-train", "loongforge-convert", "loongforge-debug", "loongforge-model-inspect"}) {
    CAPTURE(command);
    const Outcome o = run({{program(command), "-h"}});
    REQUIRE(o.code == 0);
    for (size_t at = 0; at < o.out.size();) {
      const size_t end = o.out.find('\n', at);
      const std::string line = o.out.substr(at, end - at);
      CAPTURE(line);
      CHECK(line.size() <= 80);
      at = end + 1;
    }
  }
}

TEST_CASE("unknown options are named, with what was meant") {
  check({"train",
         {"--learning_rat", "1e-4"},
         2,
         "unknown option --learning_rat; did you mean --learning_rate?"});
  check({"train", {"--lora-rnk=4"}, 2, "did you mean --lora_rank?"});
  check({"convert", {"--input-pth", "x"}, 2, "did you mean --input-path?"});
  check({"convert", {"--frobnicate"}, 2, "unknown option --frobnicate; -h lists the options"});
  check({"convert", {"model"}, 2, "unexpected word 'model'"});
}

TEST_CASE("values of the wrong type or out of range") {
  check({"train", {"--lora_rank", "eight"}, 2, "--lora_rank: 'eight' is not an integer"});
  check({"train",
         {"--lora_rank", "0"},
         2,
         "--lora_rank: '0' is out of range; give a value at least 1"});
  check({"train",
         {"--learning_rate", "-1"},
         2,
         "--learning_rate: '-1' is out of range; give a value above 0"});
  check({"train",
         {"--fp8_precision", "fp16"},
         2,
         "'fp16' is not one of e4m3, e5m2, hybrid, bf16, fp32"});
  check({"train", {"--learning_rate"}, 2, "--learning_rate needs a value"});
  check({"train",
         {"--reduce_lanes", "3", "--model_path", "m", "--dataset", "d", "--output_dir", "o"},
         2,
         "--reduce_lanes 3 is no power of two; give 1, 2, 4"});
  check({"convert", {"--quantize", "int8"}, 2, "'int8' is not one of nf4, fp8, bf16, fp32"});
  check({"convert",
         {"--export", "hf", "--input-path", "a", "--output-path", "b", "--max-shard-size", "big"},
         2,
         "--max-shard-size \"big\" is no size"});
  check({"convert", {"--threads", "0"}, 2, "--threads: '0' is out of range"});
}

TEST_CASE("what is missing is named, with what to give") {
  check({"train", {}, 2, "--model_path is missing; name a LoongIR folder"});
  check({"train", {"--model_path", "m"}, 2, "--dataset is missing"});
  check({"train", {"--model_path", "m", "--dataset", "d"}, 2, "--output_dir is missing"});
  check({"convert", {}, 2, "--input-path is missing"});
  check({"convert", {"--input-path", "m"}, 2, "--output-path is missing"});
}

TEST_CASE("options that contradict each other") {
  const std::vector<std::string> base = {"--model_path", "m", "--dataset", "d",
                                         "--output_dir", "o"};
  const auto train = [&](std::vector<std::string> words, const char* says) {
    words.insert(words.begin(), base.begin(), base.end());
    check({"train", std::move(words), 2, says});
  };
  train({"--finetuning_type", "full", "--lora_rank", "4"},
        "--lora_rank contradicts --finetuning_type full");
  train({"--eval_only", "--dry_run"}, "exclude each other");
  train({"--eval_steps", "5"}, "--eval_dataset is missing");
  train({"--eval_dataset", "e", "--eval_strategy", "steps"}, "needs --eval_steps");
  train({"--val_size", "0.1", "--eval_strategy", "steps", "--load_best_model_at_end"},
        "--eval_strategy steps needs --eval_steps; say after how many steps");
  train({"--eval_dataset", "e", "--eval_strategy", "epoch", "--eval_steps", "3"},
        "--eval_steps contradicts");
  train({"--save_strategy", "epoch", "--save_steps", "3"}, "--save_steps contradicts");
  train({"--overwrite_output_dir", "--resume_from_checkpoint"},
        "--overwrite_output_dir contradicts");
  train({"--global_batch_size", "3", "--per_device_train_batch_size", "4"},
        "--global_batch_size is smaller");
  train({"--global_batch_size", "8", "--gradient_accumulation_steps", "4"},
        "contradicts --gradient_accumulation_steps");
  train({"--max_steps", "0"}, "0 steps train nothing");
  check({"convert",
         {"--input-path", "a", "--output-path", "b", "--adapter", "c"},
         2,
         "--adapter counts for an export only"});
  check({"convert",
         {"--input-path", "a", "--output-path", "b", "--quantize", "bf16", "--quantize_head"},
         2,
         "--quantize_head needs --quantize fp8"});
  check({"convert",
         {"--export", "hf", "--input-path", "a", "--output-path", "b", "--quantize", "fp8"},
         2,
         "--quantize counts for an import only"});
  check({"convert",
         {"--export", "hf", "--input-path", "a", "--output-path", "b", "--merge"},
         2,
         "--merge needs --adapter"});
  check({"convert",
         {"--export", "hf", "--input-path", "a", "--output-path", "b", "--adapter", "c"},
         2,
         "--adapter needs --merge"});
  check({"convert",
         {"--export", "peft", "--input-path", "a", "--output-path", "b", "--max-shard-size", "1GB"},
         2,
         "--max-shard-size counts for --export hf only"});
}

TEST_CASE("configuration files: absent, broken, unknown key, wrong type") {
  const TempDir folder;
  const std::string path = (folder / "run.json").string();
  const auto with = [&](const char* text, int code, const std::string& says) {
    write(path, text);
    check({"train", {"--config", path}, code, says.c_str()});
  };
  check({"train", {"--config", (folder / "absent.json").string()}, 66, "absent.json"});
  check({"train", {"--config", folder.path().string()}, 66, folder.path().c_str()});
  with("{\"learning_rat\": 1}", 2,
       path + ": unknown key 'learning_rat'; did you mean learning_rate?");
  with("{\"lora_rank\": \"8\"}", 2, path + ": lora_rank: the value is string, not integer");
  with("{\"packing\": 1}", 2, path + ": packing: the value is integer, not boolean");
  with("{\"lora_rank\": 8, \"lora_rank\": 9}", 2, path);
  with("{\"lora_rank\": 8", 2, path);
  with("", 2, path);
  with("[]", 2, path + ": the configuration is array, not object");
}

TEST_CASE("environment: a wrong value names its variable") {
  check({"train", {}, 2, "LOONGFORGE_LORA_RANK: 'many' is not an integer"},
        {{"LOONGFORGE_LORA_RANK", "many"}});
  check({"train",
         {"--model_path", "m", "--dataset", "d", "--output_dir", "o"},
         2,
         "LOONGFORGE_ISA: 'mmx' is not an instruction set; available: scalar"},
        {{"LOONGFORGE_ISA", "mmx"}});
}

TEST_CASE("inputs that are absent end in exit code 66 and leave nothing behind") {
  const TempDir folder;
  const std::string absent = (folder / "absent").string(), out = (folder / "out").string();
  check({"convert", {"--input-path", absent, "--output-path", out}, 66, "absent"});
  check(
      {"convert", {"--export", "hf", "--input-path", absent, "--output-path", out}, 66, "absent"});
  check(
      {"train", {"--model_path", absent, "--dataset", absent, "--output_dir", out}, 66, "absent"});
  CHECK(folder.entries() == 0);
}

TEST_CASE("models that are empty or truncated end in exit code 65 or 66 and leave nothing behind") {
  const TempDir folder;
  const std::string out = (folder / "out").string();
  const std::string hollow = (folder / "hollow").string();
  std::filesystem::create_directory(hollow);
  check({"convert", {"--input-path", hollow, "--output-path", out}, 66, "hollow"});
  check({"train", {"--model_path", hollow, "--dataset", "d", "--output_dir", out}, 66, "hollow"});
  const std::string zero = (folder / "zero.gguf").string();
  write(zero, "");
  check({"convert", {"--input-path", zero, "--output-path", out}, 65, "zero.gguf"});
  const std::string cut = (folder / "cut.gguf").string();
  write(cut, std::string("GGUF\x03\0\0\0\x01\0\0\0", 12));
  check({"convert", {"--input-path", cut, "--output-path", out}, 65, "cut.gguf"});
  const std::string text = (folder / "text.gguf").string();
  write(text, "<html>404 Not Found</html>");
  check({"convert", {"--input-path", text, "--output-path", out}, 65, "text.gguf"});
  const std::string no_tensors("\x02\0\0\0\0\0\0\0{}", 10);
  write(folder / "hollow" / "model.safetensors", no_tensors);
  write(folder / "hollow" / "config.json", "{\"model_type\": \"llama\"");
  check({"convert", {"--input-path", hollow, "--output-path", out}, 65, "config.json"});
  write(folder / "hollow" / "config.json", "{\"model_type\": \"llama\"}");
  write(folder / "hollow" / "model.safetensors", no_tensors.substr(0, 9));
  check({"convert", {"--input-path", hollow, "--output-path", out}, 65, "model.safetensors"});
  CHECK_FALSE(std::filesystem::exists(out));
  CHECK(folder.entries() == 4);
}

TEST_CASE("paths that cannot be looked at, and names that no path has, end in one line") {
  const TempDir dir;
  std::filesystem::create_symlink("loop", dir / "loop");
  const std::string loop = (dir / "loop" / "x").string(), name(300, 'n');
  const std::string model = (source_dir() / "scripts" / "quickstart" / "tiny_model").string();
  const std::string out = (dir / "out").string();
  const char* const look = ": cannot look at: ";
  check({"train", {"--model_path", loop, "--dataset", "d", "--output_dir", out}, 66, look});
  check({"train", {"--model_path", model, "--dataset", "d", "--output_dir", loop}, 1, look});
  check({"train",
         {"--model_path", model, "--dataset", "d", "--output_dir", (dir / name).string()},
         1,
         "File name too long"});
  check({"train",
         {"--model_path", model, "--adapter", loop, "--dataset", "d", "--output_dir", out},
         66,
         look});
  check({"train",
         {"--model_path", model, "--resume_from_checkpoint", loop, "--dataset", "d", "--output_dir",
          out},
         66,
         look});
  check({"convert", {"--input-path", loop, "--output-path", out}, 66, look});
  check({"convert",
         {"--input-path", model, "--tokenizer_path", loop, "--output-path", out},
         66,
         look});
  check({"convert", {"--input-path", model, "--output-path", loop}, 1, look});
  check({"convert",
         {"--input-path", model, "--output-path", (dir / name).string()},
         1,
         "File name too long"});
  check({"convert", {"--export", "hf", "--input-path", loop, "--output-path", out}, 66, look});
  check({"convert",
         {"--export", "gguf", "--input-path", model, "--output-path", loop + ".gguf"},
         1,
         look});

  check({"convert", {"--input-path=~/x", "--output-path", out}, 66, "a shell replaces ~"});
  check({"convert",
         {"--input-path", "Qwen/Qwen3-0.6B", "--output-path", out},
         66,
         "nothing is downloaded"});
  check({"train",
         {"--model_path", "Qwen/Qwen3-0.6B", "--dataset", "d", "--output_dir", out},
         66,
         "nothing is downloaded"});
  const std::filesystem::path cache = dir / "models--org--name";
  std::filesystem::create_directories(cache / "snapshots" / "abc");
  check({"convert", {"--input-path", cache.string(), "--output-path", out}, 66, "/snapshots/abc"});
  check({"convert",
         {"--input-path", model, "--tokenizer_path", cache.string(), "--output-path", out},
         66,
         "/snapshots/abc"});

  // What git-lfs left in place of each kind of file.
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
  for (const char* file : {"model.safetensors", "pytorch_model.bin", "tokenizer.json", "m.gguf"}) {
    const std::filesystem::path folder = dir / (std::string("of-") + file);
    std::filesystem::copy(model, folder);
    if (file != std::string("tokenizer.json"))
      std::filesystem::remove(folder / "model.safetensors");
    write(folder / file, pointer);
    const std::string said =
        std::string(file) + ": is a git-lfs pointer, not the file; run git lfs pull";
    check({"convert", {"--input-path", folder.string(), "--output-path", out}, 65, said.c_str()});
  }
  CHECK_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace loongforge::test
