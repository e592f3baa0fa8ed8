// What a checkpoint says of the run besides weights and moments, in two files: trainer_state.json
// with exactly the keys of Hugging Face's TrainerState (it takes no others), loongforge_state.json
// with what only we need to go on. No time, host name or path stands in them. Thread-safety:
// values.
#pragma once

#include <cstdint>
#include <filesystem>

#include "support/json.h"
#include "train/best_model.h"

namespace loongforge::train {

inline constexpr const char* kTrainerStateFile = "trainer_state.json";
inline constexpr const char* kOwnStateFile = "loongforge_state.json";
inline constexpr const char* kCheckpointPrefix = "checkpoint-";

struct CheckpointState {
  int64_t step = 0;  // optimizer steps done (skipped ones count: they used up their data)
  int64_t tokens_seen = 0;
  int64_t nonfinite_steps = 0;  // in all
  int64_t saturated_steps = 0;  // in which a gradient saturated in FP8
  std::string recipe;  // the precision flags of the run: another one continues with a warning
  BestState best;
  support::Json log_history = support::Json::array();
  support::Json data;  // where a stream of samples stands; null: the step says it
  support::Json run = support::Json::object();  // what must be equal to continue: seed, batch,
                                                // lanes, dataset hash, ...
};

// What else trainer_state.json tells: follows from the options.
struct TrainerFacts {
  int64_t max_steps = 0;
  double epoch = 0;  // of the state's step
  double num_train_epochs = 1;
  int64_t train_batch_size = 1;
  int64_t logging_steps = 1, eval_steps = 0, save_steps = 0;
  double flops_per_token = 0;
  BestRules best;
};

support::Json trainer_state_json(const CheckpointState& state, const TrainerFacts& facts);
support::Json own_state_json(const CheckpointState& state, int64_t optimizer_steps);
// Both files of a checkpoint. Throws Error(kBadData / kNoInput).
CheckpointState read_state(const std::filesystem::path& folder);

}  // namespace loongforge::train
