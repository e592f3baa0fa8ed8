// Checkpoints: output_dir/checkpoint-<step>, complete or absent.
//
// Contents: LoRA: adapter_config.json and adapter_model.safetensors (FP32; PEFT loads them as they are). Full fine-tuning: a
// LoongIR folder of the FP32 masters. Both: optimizer.safetensors (moments), trainer_state.json (Hugging Face's keys and
// ours), manifest.json (size and CRC32C of every file, written last). No time, host name or path stands in them.
// Thread-safety: one thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graph/parameters.h"
#include "ir/reader.h"
#include "optim/adamw.h"
#include "support/json.h"

namespace loongforge::train {

struct CheckpointState {
  int64_t step = 0;              // optimizer steps done (skipped ones count: they used up their data)
  int64_t tokens_seen = 0;
  int64_t nonfinite_steps = 0;   // in all
  support::Json log_history = support::Json::array();
  support::Json run = support::Json::object();  // what must be equal to continue: seed, batch, lanes, dataset hash, ...
};

struct CheckpointSource {
  const ir::Reader* reader = nullptr;            // the model that is trained
  graph::Parameters* params = nullptr;
  optim::AdamW* optimizer = nullptr;
  std::string base_model;                        // named in adapter_config.json
  int64_t max_steps = 0;
  double epoch = 0;
};

// Writes checkpoint-<step> into output_dir, points `latest` at it, and removes all but the newest `keep` (0: keeps all).
std::filesystem::path save_checkpoint(const std::filesystem::path& output_dir, const CheckpointState& state,
                                      const CheckpointSource& source, int64_t keep);

// The newest checkpoint of output_dir that verifies; what is wrong with newer ones is logged. Empty: there is none.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& output_dir);
// Throws Error(kBadData / kNoInput) naming the file that is missing, of another size or checksum.
void verify_checkpoint(const std::filesystem::path& folder);

CheckpointState read_state(const std::filesystem::path& folder);
// Moments and, for LoRA, the adapter (masters of full fine-tuning are loaded with the LoongIR folder).
void restore(const std::filesystem::path& folder, const CheckpointState& state, graph::Parameters& params,
             optim::AdamW& optimizer, ThreadPool& pool);

// Bytes that a checkpoint takes on disk.
uint64_t checkpoint_bytes(const graph::Parameters& params);

}  // namespace loongforge::train
