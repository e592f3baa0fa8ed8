#include "train/trainer_state.h"

#include <cmath>
#include <string>

#include "base/error.h"

namespace loongforge::train {
namespace {

using support::Json;

Json trainer_control() {
  Json args = Json::object();
  for (const char* name : {"should_training_stop", "should_epoch_stop", "should_save",
                           "should_evaluate", "should_log"})
    args.set(name, false);
  Json control = Json::object();
  control.set("args", std::move(args));
  control.set("attributes", Json::object());
  return control;
}

Json early_stopping(const BestRules& rules, const BestState& best) {
  Json args = Json::object(), attributes = Json::object(), callback = Json::object();
  args.set("early_stopping_patience", rules.patience);
  args.set("early_stopping_threshold", rules.threshold);
  attributes.set("early_stopping_patience_counter", best.without_improvement);
  callback.set("args", std::move(args));
  callback.set("attributes", std::move(attributes));
  return callback;
}

}  // namespace

Json trainer_state_json(const CheckpointState& state, const TrainerFacts& facts) {
  const BestState& best = state.best;
  Json callbacks = Json::object();
  if (facts.best.patience > 0)
    callbacks.set("EarlyStoppingCallback", early_stopping(facts.best, best));
  callbacks.set("TrainerControl", trainer_control());
  Json json = Json::object();
  json.set("best_global_step", best.step > 0 ? Json(best.step) : Json());
  json.set("best_metric", best.metric ? Json(*best.metric) : Json());
  json.set("best_model_checkpoint",
           best.checkpoint_step > 0 ? Json(kCheckpointPrefix + std::to_string(best.checkpoint_step))
                                    : Json());
  json.set("epoch", facts.epoch);
  json.set("eval_steps", facts.eval_steps);
  json.set("global_step", state.step);
  json.set("is_hyper_param_search", false);
  json.set("is_local_process_zero", true);
  json.set("is_world_process_zero", true);
  json.set("log_history", state.log_history);
  json.set("logging_steps", facts.logging_steps);
  json.set("max_steps", facts.max_steps);
  json.set("num_input_tokens_seen", state.tokens_seen);
  json.set("num_train_epochs", static_cast<int64_t>(std::ceil(facts.num_train_epochs)));
  json.set("save_steps", facts.save_steps);
  json.set("stateful_callbacks", std::move(callbacks));
  json.set("total_flos", facts.flops_per_token * static_cast<double>(state.tokens_seen));
  json.set("train_batch_size", facts.train_batch_size);
  json.set("trial_name", Json());
  json.set("trial_params", Json());
  return json;
}

Json own_state_json(const CheckpointState& state, int64_t optimizer_steps) {
  Json best = Json::object();
  best.set("metric", state.best.metric ? Json(*state.best.metric) : Json());
  best.set("step", state.best.step);
  best.set("checkpoint_step", state.best.checkpoint_step);
  best.set("without_improvement", state.best.without_improvement);
  Json json = Json::object();
  json.set("nonfinite_steps", state.nonfinite_steps);
  json.set("saturated_steps", state.saturated_steps);
  json.set("recipe", state.recipe);
  json.set("optimizer_steps", optimizer_steps);
  json.set("best", std::move(best));
  if (!state.data.is_null()) json.set("data", state.data);
  json.set("run", state.run);
  return json;
}

CheckpointState read_state(const std::filesystem::path& folder) {
  const std::string where = (folder / kTrainerStateFile).string(),
                    where_ours = (folder / kOwnStateFile).string();
  const Json json = support::read_json(where), ours = support::read_json(where_ours);
  CheckpointState state;
  support::in_file(where, [&] {
    state.step = json.at("global_step").as_int("global_step");
    if (state.step < 0) throw_bad_data(where, "global_step is negative");
    state.tokens_seen = json.get_int("num_input_tokens_seen", 0);
    state.log_history = json.at("log_history");
    state.log_history.as_array("log_history");
  });
  support::in_file(where_ours, [&] {
    state.nonfinite_steps = ours.get_int("nonfinite_steps", 0);
    state.saturated_steps = ours.get_int("saturated_steps", 0);
    state.recipe = ours.get_string("recipe", "");
    const Json& best = ours.at("best");
    if (const Json& metric = best.at("metric"); !metric.is_null())
      state.best.metric = metric.as_double("metric");
    state.best.step = best.get_int("step", 0);
    state.best.checkpoint_step = best.get_int("checkpoint_step", 0);
    state.best.without_improvement = best.get_int("without_improvement", 0);
    if (const Json* data = ours.find("data"); data != nullptr) state.data = *data;
    state.run = ours.at("run");
    state.run.as_object("run");
  });
  return state;
}

}  // namespace loongforge::train
