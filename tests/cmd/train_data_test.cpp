// Datasets as a user gives them: several, streamed, kept tokenised, previewed, and wrong in every
// way that files are. On the tiny model that the repository carries.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/bytes.h"
#include "support/data.h"
#include "support/program.h"
#include "support/temp_dir.h"

namespace loongforge::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const fs::path kQuickstart = source_dir() / "scripts" / "quickstart";

const fs::path& model() {
  static const TempDir dir;
  static const fs::path folder = [] {
    const fs::path to = dir.path() / "tiny";
    const Outcome o =
        run({{program("loongforge-convert"), "--model-name", "tiny", "--input-path",
              kQuickstart / "tiny_model", "--output-path", to, "--quantize", "bf16"}});
    REQUIRE_MESSAGE(o.code == 0, o.err);
    return to;
  }();
  return folder;
}

Outcome train(const std::string& dataset, const Words& more) {
  Words words = {
      program("loongforge-train"), "--model_path", model(), "--dataset", dataset, "--threads", "2"};
  words.insert(words.end(), more.begin(), more.end());
  return run({words});
}

Words run_words(const fs::path& output, const Words& more) {
  Words words = {"--output_dir",
                 output,
                 "--per_device_train_batch_size",
                 "2",
                 "--gradient_accumulation_steps",
                 "3",
                 "--learning_rate",
                 "2e-3"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void check_same_folder(const fs::path& a, const fs::path& b) {
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(a)) {
    CAPTURE(entry.path().string());
    CHECK(read_text(entry.path()) == read_text(b / entry.path().filename()));
    ++files;
  }
  CHECK(files > 3);
}

TEST_CASE("a streamed run that is resumed ends with the bytes of one that was never stopped") {
  const TempDir dir;
  // More samples than the run takes, less than two windows a pass; then several passes.
  for (const Words& kind :
       {Words{"--buffer_size", "11"}, Words{"--buffer_size", "7", "--packing"},
        Words{"--buffer_size", "5", "--max_samples", "9", "--lora_dropout", "0.1"}}) {
    const fs::path whole = dir / ("whole" + kind[1]), cut = dir / ("cut" + kind[1]);
    Words words = {"--streaming", "--max_steps",        "8", "--save_steps",
                   "3",           "--save_total_limit", "5"};
    words.insert(words.end(), kind.begin(), kind.end());
    const std::string data = kQuickstart / "records.jsonl";
    const Outcome first = train(data, run_words(whole, words));
    REQUIRE_MESSAGE(first.code == 0, first.err);
    CHECK(first.err.find("streamed from ") != std::string::npos);
    fs::create_directory(cut);
    fs::copy(whole / "checkpoint-3", cut / "checkpoint-3", fs::copy_options::recursive);
    words.push_back("--resume_from_checkpoint");
    const Outcome rest = train(data, run_words(cut, words));
    REQUIRE_MESSAGE(rest.code == 0, rest.err);
    check_same_folder(whole / "checkpoint-8", cut / "checkpoint-8");
    words.insert(words.end(), {"--seed", "7"});
    CHECK(train(data, run_words(cut, words)).code == 2);
  }
}

TEST_CASE("a run from the token cache ends with the bytes of one that tokenised") {
  const TempDir dir;
  const std::string data = kQuickstart / "records.jsonl";
  const auto once = [&](const char* name, const Words& more) {
    Words words = {"--max_steps", "4", "--max_samples", "40"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome o = train(data, run_words(dir / name, words));
    REQUIRE_MESSAGE(o.code == 0, o.err);
    return o.err;
  };
  const std::string cache = dir / "cache";
  CHECK(once("a", {"--tokenized_path", cache}).find("from the token cache") == std::string::npos);
  CHECK(once("b", {"--tokenized_path", cache}).find("from the token cache") != std::string::npos);
  once("c", {"--no_cache"});
  check_same_folder(dir / "a" / "checkpoint-4", dir / "b" / "checkpoint-4");
  check_same_folder(dir / "a" / "checkpoint-4", dir / "c" / "checkpoint-4");
}

TEST_CASE("several datasets and what is held out are reported, and decide what may be resumed") {
  const TempDir dir;
  write_file(dir / "text.jsonl", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n{\"text\":\"three\"}\n");
  const std::string data =
      (kQuickstart / "records.jsonl").string() + "," + (dir / "text.jsonl").string();
  Words words = {"--mix_strategy",    "interleave_over",
                 "--dataset_weights", "3,1",
                 "--val_size",        "4",
                 "--max_samples",     "20",
                 "--max_steps",       "2"};
  const Outcome o = train(data, run_words(dir / "out", words));
  REQUIRE_MESSAGE(o.code == 0, o.err);
  for (const char* says :
       {"text.jsonl: 3 samples", "held out for evaluation: 4 samples; trained on: ",
        "mixed by interleave_over: ", "eval_loss"}) {
    CAPTURE(o.err);
    CAPTURE(says);
    CHECK(o.err.find(says) != std::string::npos);
  }
  CHECK(read_text(dir / "out" / "run_info.json").find("\"datasets\"") != std::string::npos);
  words[3] = "2,1";
  words.push_back("--resume_from_checkpoint");
  const Outcome other = train(data, run_words(dir / "out", words));
  CHECK(other.code == 2);
  CHECK(other.err.find("another choice of data (--train_on_prompt") != std::string::npos);
}

TEST_CASE("--preview shows every format as the model will see it") {
  const TempDir dir;
  struct Shown {
    const char *name, *bytes;
    Words more;
    const char* says;
  };
  const char* kShareGpt =
      "{\"conversations\":[{\"from\":\"human\",\"value\":\"q\"},{\"from\":\"gpt\",\"value\":\"a\"},"
      "{\"from\":\"human\",\"value\":\"r\"},{\"from\":\"gpt\",\"value\":\"b\"}]}\n";
  for (
      const Shown& s :
      {Shown{
           "a.json", R"([{"instruction":"i","input":"n","output":"o"}])", {}, "i\n\n### Input:\nn"},
       Shown{"s.jsonl", kShareGpt, {}, "[[a"}, Shown{"s.jsonl", kShareGpt, {}, "[[b"},
       Shown{"s.jsonl", kShareGpt, {"--mask_history"}, "Response:\na"},
       Shown{
           "m.jsonl",
           R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":"a"}]}]})",
           {},
           "[[a"},
       Shown{"t.txt", "one\n\ntwo\n", {"--text_chunks", "packed"}, "two"},
       Shown{"t.txt", "one\n\ntwo\n", {"--streaming"}, "t.txt line 3: "}}) {
    CAPTURE(s.bytes);
    write_file(dir / s.name, s.bytes);
    Words words = {"--preview", "2", "--template", "alpaca"};
    words.insert(words.end(), s.more.begin(), s.more.end());
    const Outcome o = train(dir / s.name, words);
    REQUIRE_MESSAGE(o.code == 0, o.err);
    CAPTURE(o.out);
    CHECK(o.out.find(s.says) != std::string::npos);
  }
}

// One line that names file and line, exit code 65, nothing written; loaded and streamed alike.
TEST_CASE("faults of datasets name file and line") {
  const TempDir dir;
  const std::string good = "{\"instruction\":\"i\",\"output\":\"o\"}\n";
  struct Fault {
    const char* name;
    std::string bytes;
    const char* says;
  };
  for (const Fault& f :
       {Fault{"key.jsonl", good + "{\"instruction\":\"i\"}\n",
              "key.jsonl:2: key \"output\" is missing"},
        Fault{"type.jsonl", good + "\n" + "{\"instruction\":\"i\",\"output\":7}\n",
              "type.jsonl:3: \"output\" is integer, not string"},
        Fault{"utf8.jsonl", good + "{\"instruction\":\"\xff\",\"output\":\"o\"}\n",
              "utf8.jsonl:2: byte 17 is not valid UTF-8"},
        Fault{"cut.jsonl", good + good + "{\"instruction\":\"i\",\"outp",
              "cut.jsonl:3: invalid JSON"},
        Fault{"bom.jsonl", "\xEF\xBB\xBF" + good + "{}\n", "bom.jsonl:2: key \"instruction\""},
        Fault{"crlf.jsonl", "{\"instruction\":\"i\",\"output\":\"o\"}\r\n\r\n[]\r\n",
              "crlf.jsonl:3: the record is array, not object"},
        Fault{"utf16.jsonl", std::string("\xFF\xFE{\0", 4), "utf16.jsonl:1: the text is UTF-16"},
        Fault{"array.json", "[\n" + good + ",\n{\"instruction\":3,\"output\":\"o\"}]\n",
              "array.json: record 2 (line 4): \"instruction\" is integer"},
        Fault{"open.json", "[" + good, "open.json: record 1 (line 2): the array has no end"},
        Fault{"twice.jsonl", good + "{\"instruction\":\"i\",\"output\":\"o\",\"output\":\"p\"}\n",
              "twice.jsonl:2: "},
        Fault{"deep.jsonl", good + "{\"instruction\":" + std::string(5000, '[') + "\n",
              "deep.jsonl:2: "},
        Fault{"turns.jsonl", "{\"conversations\":[{\"from\":\"gpt\",\"value\":\"a\"}]}\n",
              "turns.jsonl:1: \"conversations[0]\" is gpt's"},
        Fault{"empty.jsonl", "", "empty.jsonl: the file is empty"}}) {
    CAPTURE(f.name);
    write_file(dir / f.name, f.bytes);
    for (const bool streamed : {false, true}) {
      Words words = {"--max_steps", "3", "--template", "alpaca", "--tokenized_path", dir / "cache"};
      if (streamed) words.push_back("--streaming");
      const Outcome o = train(dir / f.name, run_words(dir / "out", words));
      CAPTURE(o.err);
      CHECK(o.code == 65);
      CHECK(o.err.find(f.says) != std::string::npos);
      const size_t last = o.err.rfind('\n', o.err.size() - 2) + 1;
      CHECK(o.err.find(f.says, last) != std::string::npos);
      if (!streamed) CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
      CHECK((!fs::exists(dir / "cache") || fs::is_empty(dir / "cache")));
      fs::remove_all(dir / "out");
    }
  }
  for (const char* name : {"bom_good.jsonl", "crlf_good.jsonl"}) {
    const bool crlf = name[0] == 'c';
    write_file(dir / name,
               crlf ? "{\"instruction\":\"i\",\"output\":\"o\"}\r\n\r\n" : "\xEF\xBB\xBF\n" + good);
    const Outcome o = train(dir / name, {"--preview", "1", "--template", "alpaca"});
    CHECK_MESSAGE(o.code == 0, o.err);
  }
}

TEST_CASE("a line of 50 MB is taken, one of 70 MB refused by its line") {
  const TempDir dir;
  const auto line = [](size_t megabytes) {
    std::string text = "{\"instruction\":\"i\",\"output\":\"";
    while (text.size() < megabytes << 20) text += "many words and no end of them, ";
    return text + "\"}\n";
  };
  write_file(dir / "long.jsonl", line(50) + line(70));
  const Outcome first = train(dir / "long.jsonl", {"--preview", "1", "--max_samples", "1",
                                                   "--template", "alpaca", "--no_cache"});
  REQUIRE_MESSAGE(first.code == 0, first.err);
  CHECK(first.out.find("1024 tokens, 1024 trained on") == std::string::npos);
  CHECK(first.out.find("1024 tokens, 1023 trained on") != std::string::npos);
  const Outcome second =
      train(dir / "long.jsonl", {"--preview", "1", "--template", "alpaca", "--no_cache"});
  CHECK(second.code == 65);
  CHECK(second.err.find("long.jsonl:2: the line is longer than 64 MB") != std::string::npos);
}

}  // namespace
}  // namespace loongforge::test
