#include "train/training_data.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "data_floor/small_tokenizer.h"
#include "support/bytes.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace loongforge::train {
namespace {

using test::make_tokenizer;
using test::TempDir;
using test::write_file;

TEST_CASE("a run's samples and those it is evaluated on") {
  const TempDir dir;
  const std::string text = "{\"text\":\"ab\"}\n{\"text\":\"c\"}\n";
  write_file(dir / "a.jsonl", text);
  write_file(dir / "b.jsonl", "{\"text\":\"xyz\"}\n");
  const data::Tokenizer tokenizer = make_tokenizer();
  TrainOptions o;
  o.dataset = (dir / "a.jsonl").string();
  const TrainingData alone = load_training_data(o, {}, tokenizer);
  CHECK_FALSE(alone.eval);
  o.eval_dataset = (dir / "b.jsonl").string();
  const TrainingData data = load_training_data(o, {}, tokenizer);
  CHECK(data.train.size() == 2);
  CHECK(data.tokens == 3 + 2);
  CHECK(data.content_hash == crc32c(test::bytes_of(text)));
  REQUIRE(data.eval);
  CHECK(data.eval->size() == 1);
  CHECK(load_eval_data(o, {}, tokenizer)->longest() == 4);
  o.eval_dataset.clear();
  CHECK(load_eval_data(o, {}, tokenizer)->size() == 2);
  o.dataset.clear();
  CHECK_FALSE(load_eval_data(o, {}, tokenizer));
}

// A file of n one-letter texts.
std::string letters(char letter, size_t n) {
  std::string lines;
  for (size_t i = 0; i < n; ++i) lines += std::string("{\"text\":\"") + letter + "\"}\n";
  return lines;
}

std::string first_letters(const data::SampleSet& samples) {
  std::string text;
  for (size_t i = 0; i < samples.size(); ++i)
    text += static_cast<char>(samples[i].ids[0] / data::kIdScale);
  return text;
}

TEST_CASE("several datasets: one after the other, or drawn by weight") {
  const TempDir dir;
  write_file(dir / "a.jsonl", letters('a', 300));
  write_file(dir / "b.jsonl", letters('b', 100));
  const data::Tokenizer tokenizer = make_tokenizer();
  TrainOptions o;
  o.dataset = (dir / "a.jsonl").string() + "," + (dir / "b.jsonl").string();
  const TrainingData concat = load_training_data(o, {}, tokenizer);
  CHECK(first_letters(concat.train) == std::string(300, 'a') + std::string(100, 'b'));
  REQUIRE(concat.shares.size() == 2);
  CHECK(concat.shares[1].samples == 100);
  CHECK(concat.tokens == 800);
  o.dataset_weights = {1, 3};
  const TrainingData mixed = load_training_data(o, {}, tokenizer);
  CHECK(mixed.shares[1].samples == 100);  // it is what ends the mixture
  CHECK(mixed.shares[0].samples < 60);
  CHECK(mixed.train.size() == static_cast<size_t>(100 + mixed.shares[0].samples));
  CHECK(first_letters(load_training_data(o, {}, tokenizer).train) == first_letters(mixed.train));
  o.mix_strategy = data::MixStrategy::kInterleaveOver;
  const TrainingData over = load_training_data(o, {}, tokenizer);
  CHECK(over.shares[0].samples == 300);
  CHECK(over.shares[1].samples > 700);
  // Another order of the files is another dataset.
  TrainOptions swapped = o;
  swapped.dataset = (dir / "b.jsonl").string() + "," + (dir / "a.jsonl").string();
  CHECK(load_training_data(swapped, {}, tokenizer).content_hash != over.content_hash);
}

TEST_CASE("val_size holds samples out before datasets are mixed: none stands on both sides") {
  const TempDir dir;
  std::string lines;
  for (char c = 'a'; c <= 'z'; ++c) lines += std::string("{\"text\":\"") + c + "\"}\n";
  write_file(dir / "a.jsonl", lines);
  write_file(dir / "b.jsonl", letters('0', 3));
  const data::Tokenizer tokenizer = make_tokenizer();
  TrainOptions o;
  o.dataset = (dir / "a.jsonl").string();
  o.val_size = 5;
  const TrainingData one = load_training_data(o, {}, tokenizer);
  REQUIRE(one.eval);
  CHECK(one.eval->size() == 5);
  CHECK(one.train.size() == 21);
  CHECK(first_letters(*load_eval_data(o, {}, tokenizer)) == first_letters(*one.eval));
  o.dataset += "," + (dir / "b.jsonl").string();
  o.mix_strategy = data::MixStrategy::kInterleaveOver;
  o.val_size = 0.3;
  const TrainingData two = load_training_data(o, {}, tokenizer);
  REQUIRE(two.eval);
  CHECK(two.eval->size() == 9);
  const std::string held = first_letters(*two.eval);
  for (const char letter : first_letters(two.train))
    CHECK((letter == '0' || held.find(letter) == std::string::npos));
  o.seed = 43;
  CHECK(first_letters(*load_training_data(o, {}, tokenizer).eval) != held);
}

TEST_CASE("streaming opens the files and reads what is held out, no more") {
  const TempDir dir;
  write_file(dir / "a.jsonl", letters('a', 3) + "broken");
  const data::Tokenizer tokenizer = make_tokenizer();
  TrainOptions o;
  o.dataset = (dir / "a.jsonl").string();
  o.streaming = true;
  o.max_steps = 1;
  o.val_size = 2;
  const TrainingData data = load_training_data(o, {}, tokenizer);
  REQUIRE(data.stream);
  CHECK(data.train.empty());
  REQUIRE(data.eval);
  CHECK(first_letters(*data.eval) == "aa");
  CHECK(first_letters(*load_eval_data(o, {}, tokenizer)) == "aa");
  data::Sample sample;
  data.stream->next(sample);
  LF_CHECK_ERROR(data.stream->next(sample), ErrorCode::kBadData, "a.jsonl:4: invalid JSON");
}

TEST_CASE("a file's name may hold a comma") {
  const TempDir dir;
  write_file(dir / "a,b.txt", "x\n");
  CHECK(dataset_names((dir / "a,b.txt").string()).size() == 1);
  CHECK(dataset_names("a,b,,c") == std::vector<std::string>{"a", "b", "c"});
  CHECK(dataset_names("").empty());
}

TEST_CASE("choices about data that no run can have") {
  const auto bad = [](auto make, const char* text) {
    TrainOptions o;
    o.dataset = "a,b";
    make(o);
    LF_CHECK_ERROR(check_data_options(o), ErrorCode::kUsage, text);
  };
  bad([](auto& o) { o.train_on_prompt = o.mask_history = true; }, "contradicts --mask_history");
  bad([](auto& o) { o.val_size = 1.5; }, "--val_size must be a share below 1 or a whole number");
  bad([](auto& o) { o.val_size = 2, o.eval_dataset = "e"; }, "--val_size contradicts");
  bad([](auto& o) { o.dataset_weights = {1}; }, "--dataset_weights has 1 number for 2 datasets");
  bad([](auto& o) { o.dataset_weights = {1, 0}; }, "--dataset_weights must be above 0");
  bad(
      [](auto& o) {
        o.dataset_weights = {1, 1};
        o.mix_strategy = data::MixStrategy::kConcat;
      },
      "contradicts --mix_strategy concat");
  bad([](auto& o) { o.streaming = true; }, "--streaming needs --max_steps");
  bad([](auto& o) { o.streaming = true, o.max_steps = 1, o.val_size = 0.5; }, "must be a count");
  bad([](auto& o) { o.streaming = true, o.max_steps = 1, o.buffer_size = 0; }, "--buffer_size");
  bad([](auto& o) { o.dataset = ","; }, "--dataset names nothing");
}

TEST_CASE(
    "every choice about data that changes the samples changes what a run may be continued with") {
  const TrainOptions plain;
  std::vector<TrainOptions> others(11, plain);
  others[0].train_on_prompt = true;
  others[1].mask_history = true;
  others[2].template_name = "alpaca";
  others[3].text_chunks = data::TextChunks::kLine;
  others[4].max_samples = 3;
  others[5].val_size = 0.25;
  others[6].mix_strategy = data::MixStrategy::kInterleaveOver;
  others[7].dataset_weights = {1, 2};
  others[8].dataset_weights = {1, 3};
  others[9].streaming = true;
  others[10].streaming = true;
  others[10].buffer_size = 5;
  std::vector<std::string> seen = {data_identity(plain)};
  for (const TrainOptions& o : others) {
    const std::string words = data_identity(o);
    CHECK(std::find(seen.begin(), seen.end(), words) == seen.end());
    seen.push_back(words);
  }
}

}  // namespace
}  // namespace loongforge::train
