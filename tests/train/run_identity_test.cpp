#include "train/run_identity.h"

#include <doctest/doctest.h>

#include <functional>

#include "support/bytes.h"
#include "support/expect_error.h"
#include "train/tiny_session.h"

using namespace loongforge;
using namespace loongforge::test;
using support::Json;

namespace {

struct Run {
  train::Session session;
  train::TrainingData data;
  explicit Run(const train::TrainOptions& options)
      : session(options, captured_output()), data(load_data(session)) {}
  Json identity(const train::TrainOptions& o) const {
    return train::run_identity(o, train::shape_of(o, data), data, session.reader().model());
  }
};

}  // namespace

TEST_CASE("each option that decides bits is compared, and named with both values") {
  const train::TrainOptions options = quickstart_options();
  const Run run(options);
  const Json saved = Json::parse(run.identity(options).dump(), "state");  // as a checkpoint has it
  train::check_identity(saved, run.identity(options));
  struct Change {
    std::function<void(train::TrainOptions&)> make;
    const char* says;
  };
  const Change changes[] = {
      {[](auto& o) { o.learning_rate = 5e-2; }, "another --learning_rate (0.0002, now 0.05)"},
      {[](auto& o) { o.lr_scheduler_type = "linear"; },
       "another --lr_scheduler_type (\"cosine\", now \"linear\")"},
      {[](auto& o) { o.warmup_steps = 3; }, "another warm-up (--warmup_ratio, --warmup_steps)"},
      {[](auto& o) { o.weight_decay = 0.5; }, "another --weight_decay (0.0, now 0.5)"},
      {[](auto& o) { o.adam_beta1 = 0.1; }, "another --adam_beta1 (0.9, now 0.1)"},
      {[](auto& o) { o.adam_beta2 = 0.1; }, "another --adam_beta2"},
      {[](auto& o) { o.adam_epsilon = 1e-6; }, "another --adam_epsilon"},
      {[](auto& o) { o.max_grad_norm = 0; }, "another --max_grad_norm (1.0, now 0.0)"},
      {[](auto& o) { o.lora_dropout = 0.5; }, "another --lora_dropout (0.0, now 0.5)"},
      {[](auto& o) { o.seed = 7; }, "another --seed (42, now 7)"},
      {[](auto& o) { o.max_steps = 3; }, "another number of steps"},
      {[](auto& o) { o.finetuning_type = train::FinetuningType::kFull; },
       "another --finetuning_type"},
  };
  for (const Change& change : changes) {
    train::TrainOptions o = options;
    change.make(o);
    LF_CHECK_ERROR(train::check_identity(saved, run.identity(o)), ErrorCode::kUsage, change.says);
  }
  train::TrainOptions free = options;
  free.save_steps = 3;
  free.logging_steps = 2;
  free.threads = 1;
  free.learning_rate = 2e-4;  // what the default is
  train::check_identity(saved, run.identity(free));
}

TEST_CASE("another base model is no run to go on with; of full fine-tuning another shape") {
  train::TrainOptions options = quickstart_options();
  const Run run(options);
  Json saved = run.identity(options);
  saved.set("base_model_crc32c", 1);
  LF_CHECK_ERROR(train::check_identity(saved, run.identity(options)), ErrorCode::kUsage,
                 "another base model than --model_path names");
  saved.erase("base_model_crc32c");  // as older versions wrote it
  train::check_identity(saved, run.identity(options));
  options.finetuning_type = train::FinetuningType::kFull;
  saved = run.identity(options);
  CHECK_FALSE(saved.contains("base_model_crc32c"));
  saved.set("model_shape_crc32c", 1);
  LF_CHECK_ERROR(train::check_identity(saved, run.identity(options)), ErrorCode::kUsage,
                 "another shape of model");
  saved.erase("seed");  // every version kept it
  saved.erase("model_shape_crc32c");
  LF_CHECK_ERROR(train::check_identity(saved, run.identity(options)), ErrorCode::kUsage,
                 "another --seed (none, now 42)");
}

TEST_CASE("an adapter is compared by its content, where one is named") {
  const TempDir dir;
  for (const char* name : {"a", "b", "c"}) {
    std::filesystem::create_directory(dir / name);
    write_file(dir / name / "adapter_config.json", "{}");
    write_file(dir / name / "adapter_model.safetensors",
               name == std::string("c") ? "other" : "same");
  }
  train::TrainOptions options = quickstart_options();
  const Run run(options);
  const Json without = run.identity(options);
  options.adapter_path = dir / "a";
  const Json with = run.identity(options);
  train::check_identity(with, without);  // the checkpoint has it
  options.adapter_path = dir / "b";
  train::check_identity(with, run.identity(options));
  LF_CHECK_ERROR(train::check_identity(without, with), ErrorCode::kUsage, "another --adapter; ");
  options.adapter_path = dir / "c";
  LF_CHECK_ERROR(train::check_identity(with, run.identity(options)), ErrorCode::kUsage,
                 "another --adapter; ");
}
