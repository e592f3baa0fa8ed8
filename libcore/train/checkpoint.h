// Checkpoints: output_dir/checkpoint-<step>, complete or absent.
//
// Contents: LoRA: adapter_config.json and adapter_model.safetensors (FP32; PEFT loads them as they
// are). Full fine-tuning: a LoongIR folder of the FP32 masters. Both: optimizer.safetensors
// (moments), trainer_state.json (Hugging Face's), loongforge_state.json (ours), scaling.safetensors
// (of delayed scaling), manifest.json (size and CRC32C of every file, written last). No time, host
// name or path stands in them. Thread-safety: one thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graph/parameters.h"
#include "ir/reader.h"
#include "optim/adamw.h"
#include "quant/scaling_state.h"
#include "train/trainer_state.h"

namespace loongforge::train {

struct CheckpointSource {
  const ir::Reader* reader = nullptr;  // the model that is trained
  graph::Parameters* params = nullptr;
  optim::AdamW* optimizer = nullptr;
  std::string base_model;  // named in adapter_config.json
  TrainerFacts facts;
  const quant::ScalingState* scaling = nullptr;  // of delayed scaling
};

// Writes checkpoint-<step> into output_dir, points `latest` at it and `best` at the best one saved,
// and removes all but the newest `keep`, this one and the best (0: keeps all).
std::filesystem::path save_checkpoint(const std::filesystem::path& output_dir,
                                      const CheckpointState& state, const CheckpointSource& source,
                                      int64_t keep);

// Moments and, for LoRA, the adapter (masters of full fine-tuning are loaded with the LoongIR
// folder).
void restore(const std::filesystem::path& folder, const CheckpointState& state,
             graph::Parameters& params, optim::AdamW& optimizer, ThreadPool& pool);

// Bytes that a checkpoint takes on disk.
uint64_t checkpoint_bytes(const graph::Parameters& params, const optim::AdamW& optimizer,
                          const ir::Reader& model);

}  // namespace loongforge::train
