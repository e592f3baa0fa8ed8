#include "train/trainer_state.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/file.h"
#include "support/expect_error.h"
#include "support/python.h"
#include "support/temp_dir.h"

using namespace loongforge;
using namespace loongforge::test;
using support::Json;

namespace {

train::CheckpointState some_state() {
  train::CheckpointState state;
  state.step = 40;
  state.tokens_seen = 1000;
  state.nonfinite_steps = 1;
  state.best = {0.1 + 0.2, 30, 30, 1};
  Json entry = Json::object();
  entry.set("loss", 1.5);
  entry.set("step", 40);
  state.log_history.push_back(entry);
  state.run.set("seed", 7);
  return state;
}

train::TrainerFacts some_facts() {
  train::TrainerFacts facts;
  facts.max_steps = 100;
  facts.epoch = 0.8;
  facts.num_train_epochs = 1.2;
  facts.train_batch_size = 4;
  facts.logging_steps = 5;
  facts.eval_steps = 10;
  facts.save_steps = 20;
  facts.flops_per_token = 600;
  facts.best = {true, false, 3, 0.01};
  return facts;
}

void write_state(const TempDir& dir, const train::CheckpointState& state) {
  write_text_atomic(dir / train::kTrainerStateFile,
                    train::trainer_state_json(state, some_facts()).dump(2) + "\n");
  write_text_atomic(dir / train::kOwnStateFile, train::own_state_json(state, 39).dump(2) + "\n");
}

}  // namespace

TEST_CASE("trainer_state.json holds the fields of Hugging Face's TrainerState and no other") {
  const Json json = train::trainer_state_json(some_state(), some_facts());
  // dataclasses.fields(TrainerState) of transformers 5.24
  std::vector<std::string> fields = {"best_global_step",
                                     "best_metric",
                                     "best_model_checkpoint",
                                     "epoch",
                                     "eval_steps",
                                     "global_step",
                                     "is_hyper_param_search",
                                     "is_local_process_zero",
                                     "is_world_process_zero",
                                     "log_history",
                                     "logging_steps",
                                     "max_steps",
                                     "num_input_tokens_seen",
                                     "num_train_epochs",
                                     "save_steps",
                                     "stateful_callbacks",
                                     "total_flos",
                                     "train_batch_size",
                                     "trial_name",
                                     "trial_params"};
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.as_object()) keys.push_back(key);
  CHECK(keys == fields);
  CHECK(json.at("best_model_checkpoint").as_string() == "checkpoint-30");
  CHECK(json.at("num_train_epochs").as_int() == 2);
  CHECK(json.at("total_flos").as_double() == 600000);
}

TEST_CASE("what both files say is read back to the bit") {
  TempDir dir;
  const train::CheckpointState before = some_state();
  write_state(dir, before);
  const train::CheckpointState after = train::read_state(dir.path());
  CHECK(after.step == before.step);
  CHECK(after.tokens_seen == before.tokens_seen);
  CHECK(after.nonfinite_steps == before.nonfinite_steps);
  CHECK(after.best == before.best);
  CHECK(after.log_history == before.log_history);
  CHECK(after.run == before.run);
  train::CheckpointState none;
  write_state(dir, none);
  CHECK(train::read_state(dir.path()).best == train::BestState());
}

TEST_CASE("a state that is wrong names its file") {
  TempDir dir;
  write_state(dir, some_state());
  write_text_atomic(dir / train::kTrainerStateFile, "{\"global_step\": -3, \"log_history\": []}");
  LF_CHECK_ERROR(train::read_state(dir.path()), ErrorCode::kBadData, "trainer_state.json");
  write_text_atomic(dir / train::kTrainerStateFile, "{\"global_step\": 3, \"log_history\": 5}");
  LF_CHECK_ERROR(train::read_state(dir.path()), ErrorCode::kBadData,
                 "trainer_state.json: log_history");
  write_state(dir, some_state());
  write_text_atomic(dir / train::kOwnStateFile, "{\"best\": {}}");
  LF_CHECK_ERROR(train::read_state(dir.path()), ErrorCode::kBadData, "loongforge_state.json");
}

TEST_CASE("transformers loads trainer_state.json and the early stopping in it") {
  const std::string python = python_with("transformers");
  if (python.empty()) return;
  TempDir dir;
  write_state(dir, some_state());
  const Outcome o =
      run({{python, "-c",
            "import sys\n"
            "from transformers import EarlyStoppingCallback, TrainerControl\n"
            "from transformers.trainer_callback import TrainerState\n"
            "s = TrainerState.load_from_json(sys.argv[1])\n"
            "e = EarlyStoppingCallback.from_state(s.stateful_callbacks['EarlyStoppingCallback'])\n"
            "TrainerControl.from_state(s.stateful_callbacks['TrainerControl'])\n"
            "print(s.global_step, s.best_metric == 0.1 + 0.2, s.best_global_step, "
            "s.best_model_checkpoint,\n"
            "      s.log_history, e.early_stopping_patience, e.early_stopping_patience_counter)\n"
            "s.save_to_json(sys.argv[2])\n",
            dir / train::kTrainerStateFile, dir / "again.json"}});
  REQUIRE_MESSAGE(o.code == 0, o.err);
  CHECK(o.out == "40 True 30 checkpoint-30 [{'loss': 1.5, 'step': 40}] 3 1\n");
  CHECK(support::read_json(dir / "again.json").dump(-1, true) ==
        support::read_json(dir / train::kTrainerStateFile).dump(-1, true));
}
