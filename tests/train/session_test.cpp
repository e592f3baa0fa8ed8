#include "train/session.h"

#include <doctest/doctest.h>

#include <functional>

#include "graph/tiny_models.h"
#include "support/expect_error.h"

using namespace loongforge;

TEST_CASE("options that no run can have are named") {
  train::TrainOptions good;
  good.model_path = "m";
  good.dataset = "d";
  train::check_options(good);
  struct Fault {
    std::function<void(train::TrainOptions&)> make;
    const char* says;
  };
  const Fault faults[] = {
      {[](auto& o) { o.model_path.clear(); }, "--model_path"},
      {[](auto& o) { o.dataset.clear(); }, "--dataset"},
      {[](auto& o) { o.lora_rank = 0; }, "--lora_rank"},
      {[](auto& o) { o.cutoff_len = 1; }, "--cutoff_len"},
      {[](auto& o) { o.lora_dropout = 1; }, "--lora_dropout"},
      {[](auto& o) { o.reduce_lanes = 6; }, "--reduce_lanes 6 is no power of two"},
      {[](auto& o) { o.global_batch_size = 1, o.per_device_train_batch_size = 2; },
       "--global_batch_size"},
      {[](auto& o) { o.recipe.scale_factor = 0; }, "--fp8_scale_factor"},
      {[](auto& o) { o.warmup_ratio = 1.5; }, "--warmup_ratio"},
      {[](auto& o) { o.learning_rate = -1; }, "--learning_rate"},
      {[](auto& o) { o.adam_beta2 = 1; }, "--adam_beta1"},
      {[](auto& o) { o.eval_strategy = train::Strategy::kSteps; }, "--eval_steps"},
      {[](auto& o) { o.save_total_limit = 1; }, "--save_total_limit"},
      {[](auto& o) { o.finetuning_type = train::FinetuningType::kFull, o.adapter_path = "a"; },
       "--adapter_path"},
  };
  for (const Fault& fault : faults) {
    train::TrainOptions o = good;
    fault.make(o);
    LF_CHECK_ERROR(train::check_options(o), ErrorCode::kUsage, fault.says);
  }
}

TEST_CASE("packing is refused where a document's results depend on its neighbours") {
  const test::TinyModel model("llama_dynamic", "bf16");
  train::TrainOptions o;
  o.model_path = model.folder();
  o.dataset = "d";
  o.dry_run = true;
  o.packing = true;
  LF_CHECK_ERROR(train::Session(o, {}), ErrorCode::kUsage, "--packing does not go with");
  // Without packing the next thing that is missing is the tokenizer.
  o.packing = false;
  LF_CHECK_ERROR(train::Session(o, {}), ErrorCode::kNoInput, "tokenizer");
}
