#include "train/training_data.h"

#include <doctest/doctest.h>

#include "base/checksum.h"
#include "data_floor/small_tokenizer.h"
#include "support/bytes.h"
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
  CHECK(data.counts.tokens == 3 + 2);
  CHECK(data.content_hash == crc32c(test::bytes_of(text)));
  REQUIRE(data.eval);
  CHECK(data.eval->size() == 1);
  CHECK(load_eval_data(o, {}, tokenizer)->longest() == 4);
  o.eval_dataset.clear();
  CHECK(load_eval_data(o, {}, tokenizer)->size() == 2);
  o.dataset.clear();
  CHECK_FALSE(load_eval_data(o, {}, tokenizer));
}

}  // namespace
}  // namespace loongforge::train
