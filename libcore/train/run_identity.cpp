#include "train/run_identity.h"

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "ir/identity.h"

namespace loongforge::train {
namespace {

using support::Json;

constexpr const char* kAdapter = "adapter_crc32c";

// Kept since these keys were added: checkpoints that lack them are as good as before.
const std::set<std::string> kMayBeAbsent = {
    "base_model_crc32c", "model_shape_crc32c", "learning_rate", "lr_scheduler_type",
    "warmup_steps",      "weight_decay",       "adam_beta1",    "adam_beta2",
    "adam_epsilon",      "max_grad_norm",      "lora_dropout",  kAdapter};

// The options behind a key.
std::string identity_word(const std::string& key) {
  static const std::map<std::string, std::string> kWords = {
      {"micro_batch_rows", "--per_device_train_batch_size"},
      {"global_batch_rows",
       "number of rows a step (--per_device_train_batch_size, --gradient_accumulation_steps, "
       "--global_batch_size)"},
      {"total_steps",
       "number of steps (--max_steps, --num_train_epochs, or the size of the dataset)"},
      {"data",
       "choice of data (--train_on_prompt, --mask_history, --template, --text_chunks, "
       "--max_samples, --val_size, --mix_strategy, "
       "--dataset_weights, --streaming, --buffer_size)"},
      {"dataset_crc32c", "dataset"},
      {"rows", "number of rows of the dataset"},
      {"base_model_crc32c", "base model than --model_path names"},
      {"model_shape_crc32c", "shape of model than --model_path names"},
      {"warmup_steps", "warm-up (--warmup_ratio, --warmup_steps)"},
      {kAdapter, "--adapter"}};
  const auto word = kWords.find(key);
  return word == kWords.end() ? "--" + key : word->second;
}

// Nothing that a reader knows the value of.
bool is_checksum(const std::string& key) { return key.ends_with("_crc32c"); }

// null: the run began without one.
Json adapter_checksum(const std::string& folder) {
  if (folder.empty()) return {};
  uint32_t crc = 0;
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"}) {
    const MappedFile file(std::filesystem::path(folder) / name);
    crc = crc32c(file.bytes(), crc);
  }
  return static_cast<int64_t>(crc);
}

}  // namespace

Json run_identity(const TrainOptions& o, const RunShape& shape, const TrainingData& data,
                  const ir::Model& model) {
  const bool full = o.finetuning_type == FinetuningType::kFull;
  Json run = Json::object();
  run.set("finetuning_type", full ? "full" : "lora");
  run.set("seed", static_cast<int64_t>(o.seed));
  run.set("micro_batch_rows", o.per_device_train_batch_size);
  run.set("global_batch_rows", shape.rows_per_step);
  run.set("reduce_lanes", shape.lanes);
  run.set("packing", o.packing);
  run.set("cutoff_len", o.cutoff_len);
  run.set("total_steps", shape.plan.total_steps());
  run.set("data", data_identity(o));
  run.set("dataset_crc32c", static_cast<int64_t>(data.content_hash));
  run.set("rows", static_cast<int64_t>(shape.rows.size()));
  if (full)  // the checkpoint holds the weights
    run.set("model_shape_crc32c", static_cast<int64_t>(ir::identity_of_shape(model)));
  else
    run.set("base_model_crc32c", static_cast<int64_t>(ir::identity_with_weights(model)));
  run.set("learning_rate", shape.learning_rate);
  run.set("lr_scheduler_type", o.lr_scheduler_type);
  run.set("warmup_steps", o.lr_scheduler_type == "constant" ? 0 : shape.warmup_steps);
  run.set("weight_decay", o.weight_decay);
  run.set("adam_beta1", o.adam_beta1);
  run.set("adam_beta2", o.adam_beta2);
  run.set("adam_epsilon", o.adam_epsilon);
  run.set("max_grad_norm", o.max_grad_norm);
  if (full) return run;
  run.set("lora_dropout", o.lora_dropout);
  run.set(kAdapter, adapter_checksum(o.adapter_path));
  return run;
}

void check_identity(const Json& saved, const Json& now) {
  const auto text = [](const Json* value) {
    return value == nullptr || value->is_null() ? "none" : value->dump();
  };
  for (const auto& [key, value] : now.as_object()) {
    const Json* before = saved.find(key);
    if (before == nullptr && kMayBeAbsent.contains(key)) continue;
    if (key == kAdapter && value.is_null()) continue;
    if (before == nullptr || !(*before == value))
      throw_usage("the checkpoint was made with another " + identity_word(key) +
                      (is_checksum(key) ? "" : " (" + text(before) + ", now " + text(&value) + ")"),
                  "resume with the options, model and data of the run (--config "
                  "OUTPUT_DIR/run_config.json has them), or start anew in another --output_dir");
  }
}

}  // namespace loongforge::train
