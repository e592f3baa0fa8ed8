// Recipes in whole models: what is rounded when, the same bits however it is run, what is counted.
#include "graph/ops/rounding.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "graph/tiny_models.h"
#include "kernels/isa.h"

using namespace loongforge;
using namespace loongforge::test;
using quant::Activations;
using quant::RunPrecision;
using quant::ScaleRecipe;

namespace {

const std::vector<int64_t> kLengths = {37, 1, 90, 12};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<quant::Recipe> recipes() {
  std::vector<quant::Recipe> list;
  for (const RunPrecision precision :
       {RunPrecision::kFp8, RunPrecision::kE5M2, RunPrecision::kHybrid})
    for (const Activations activations :
         {Activations::kSaved, Activations::kCompute, Activations::kOff})
      for (const ScaleRecipe scales : {ScaleRecipe::kBlock, ScaleRecipe::kTensorCurrent}) {
        quant::Recipe r;
        r.precision = precision;
        r.activations = activations;
        r.scales = scales;
        list.push_back(r);
      }
  return list;
}

void check_same(const TinyResult& a, const TinyResult& b) {
  CHECK(a.stats.loss_sum == b.stats.loss_sum);
  CHECK(same_bits(a.gradients, b.gradients));
  CHECK(same_bits(a.logits, b.logits));
  REQUIRE(a.stats.tensors.size() == b.stats.tensors.size());
  for (const auto& [name, stats] : a.stats.tensors) {
    const quant::TensorStats& other = b.stats.tensors.at(name);
    CHECK(stats.elements == other.elements);
    CHECK(stats.counts.overflow == other.counts.overflow);
    CHECK(stats.counts.zero == other.counts.zero);
    CHECK(stats.counts.peak == other.counts.peak);
    CHECK(stats.error.error_squares == other.error.error_squares);
    CHECK(stats.error.relative_squares == other.error.relative_squares);
  }
}

// Everything that a step over this recipe gives, with errors measured.
TinyResult run_recipe(const TinyModel& model, const TinyRun& run, const graph::Batch& batch,
                      quant::ScalingState* scaling = nullptr) {
  ThreadPool pool(run.threads);
  auto params = load_tiny(model, run, pool);
  graph::Executor executor(graph::make_plan(model.reader().model(), *params, plan_for(run)),
                           *params, pool);
  executor.set_scaling(scaling);
  executor.set_measure_errors(true);
  TinyResult result;
  result.gradients.assign(static_cast<size_t>(params->trainable_floats()), 0.0f);
  graph::RunRequest request;
  request.gradients = result.gradients.data();
  request.row_loss = &result.row_loss;
  result.stats = executor.run(batch, request);
  return result;
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double diff = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    diff += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(diff / norm);
}

}  // namespace

TEST_CASE("every recipe: the same bits on every ISA, for any threads, recomputed or saved") {
  const kernels::Isa before = kernels::active_isa();
  const TinyModel model("llama3", "bf16");
  const graph::Batch batch = random_batch(kLengths, 384);
  for (const quant::Recipe& recipe : recipes()) {
    for (bool full : {true, false}) {
      INFO(recipe.flags(), full ? " full" : " lora");
      TinyRun run;
      run.recipe = recipe;
      run.full = full;
      run.threads = 1;
      const TinyResult want = run_recipe(model, run, batch);
      for (kernels::Isa isa : kernels::testable_isas()) {
        REQUIRE(kernels::set_active_isa(isa));
        check_same(want, run_recipe(model, run, batch));
      }
      kernels::set_active_isa(before);
      run.threads = 3;
      check_same(want, run_recipe(model, run, batch));
      run.plan.gradient_checkpointing = true;
      check_same(want, run_recipe(model, run, batch));
    }
  }
}

TEST_CASE(
    "what is rounded: X for dW where it is saved, X and dY where they compute, nothing where off") {
  const TinyModel model("llama3", "bf16");
  const graph::Batch batch = random_batch(kLengths, 384);
  const auto names = [&](Activations activations, bool full) {
    TinyRun run;
    run.recipe.activations = activations;
    run.full = full;
    std::map<std::string, int> count;
    for (const auto& [name, stats] : run_recipe(model, run, batch).stats.tensors) {
      ++count[name.substr(name.rfind('.'))];
      CHECK(stats.elements > 0);
      CHECK(stats.counts.overflow == 0);  // just in time
      CHECK(stats.headroom() >= 0.0);
      CHECK(stats.headroom() < 1.0);
      CHECK(stats.relative_rms() > 0.0);
      CHECK(stats.relative_rms() < 0.05);
      CHECK(stats.gradient == name.ends_with(".grad"));
    }
    return count;
  };
  using Count = std::map<std::string, int>;
  // Per block: X of q/k/v, o, gate/up, down; dY of seven linears. Three blocks.
  CHECK(names(Activations::kOff, true) == Count{});
  CHECK(names(Activations::kSaved, true) == Count{{".input", 12}});
  CHECK(names(Activations::kCompute, true) == Count{{".input", 12}, {".grad", 21}});
  // Below the first block's q/k/v nothing is trained: their dY is needed by no product with W.
  CHECK(names(Activations::kCompute, false) == Count{{".input", 12}, {".grad", 18}});
}

TEST_CASE("the forward: bf16 operands but for compute, whose evaluation and training agree") {
  const TinyModel model("llama3", "bf16");
  const graph::Batch batch = random_batch(kLengths, 384);
  TinyRun run;
  run.recipe.activations = Activations::kOff;
  const TinyResult off = run_tiny(model, run, batch);
  run.recipe.activations = Activations::kSaved;
  const TinyResult saved = run_tiny(model, run, batch);
  CHECK(same_bits(off.logits, saved.logits));
  CHECK_FALSE(same_bits(off.gradients, saved.gradients));
  run.recipe.activations = Activations::kCompute;
  const TinyResult compute = run_tiny(model, run, batch);
  CHECK_FALSE(same_bits(off.logits, compute.logits));
  CHECK(difference(compute.logits, off.logits) < 0.2);
  run.plan.mode = graph::PlanMode::kEval;
  ThreadPool pool(2);
  auto params = load_tiny(model, run, pool);
  graph::Executor eval(graph::make_plan(model.reader().model(), *params, plan_for(run)), *params,
                       pool);
  CHECK(eval.run(batch, {}).loss_sum == compute.stats.loss_sum);
}

TEST_CASE("hybrid differs from e4m3 by its gradients alone, and only where they are rounded") {
  const TinyModel model("llama3", "bf16");
  const graph::Batch batch = random_batch(kLengths, 384);
  TinyRun e4m3, hybrid;
  hybrid.recipe.precision = RunPrecision::kHybrid;
  check_same(run_recipe(model, e4m3, batch), run_recipe(model, hybrid, batch));
  e4m3.recipe.activations = hybrid.recipe.activations = Activations::kCompute;
  const TinyResult a = run_tiny(model, e4m3, batch), b = run_tiny(model, hybrid, batch);
  CHECK(same_bits(a.logits, b.logits));
  CHECK_FALSE(same_bits(a.gradients, b.gradients));
  for (const auto& [name, stats] : b.stats.tensors)
    CHECK(stats.elem == (stats.gradient ? kernels::Elem::kE5M2 : kernels::Elem::kE4M3));
}

TEST_CASE("one scale a tensor: all its exponents are equal, weights too") {
  const TinyModel model("llama3", "bf16");
  for (bool full : {true, false}) {
    TinyRun run;
    run.full = full;
    run.recipe.scales = ScaleRecipe::kTensorCurrent;
    ThreadPool pool(2);
    auto params = load_tiny(model, run, pool);
    int seen = 0;
    for (const auto& [name, w] : params->weights()) {
      if (w.exponents.empty()) continue;
      ++seen;
      for (int8_t e : w.exponents) CHECK(e == w.exponents[0]);
    }
    CHECK(seen >= 10);
  }
}

TEST_CASE(
    "delayed: the first step is scaled by itself, later ones by history; what saturates is "
    "counted") {
  const TinyModel model("llama3", "bf16");
  const graph::Batch batch = random_batch(kLengths, 384);
  TinyRun current, delayed;
  current.recipe.activations = delayed.recipe.activations = Activations::kCompute;
  current.recipe.scales = ScaleRecipe::kTensorCurrent;
  delayed.recipe.scales = ScaleRecipe::kDelayed;
  quant::ScalingState state(delayed.recipe);
  const TinyResult now = run_recipe(model, current, batch),
                   first = run_recipe(model, delayed, batch, &state);
  check_same(now, first);
  state.end_step({}, false);
  check_same(now,
             run_recipe(model, delayed, batch, &state));  // the same batch: the same largest values
  CHECK(state.tensors().size() == 33);

  // A history of values that were far smaller: everything above saturates, and says so.
  auto small = state.tensors();
  for (auto& [name, t] : small)
    if (name.ends_with("0.mlp.down_proj.grad")) t.amax.assign(1, t.amax[0] / 16);
  quant::ScalingState low(delayed.recipe);
  low.restore(small);
  const TinyResult saturated = run_recipe(model, delayed, batch, &low);
  for (const auto& [name, stats] : saturated.stats.tensors) {
    const bool planted = name.ends_with("0.mlp.down_proj.grad");
    CHECK((stats.counts.overflow > 0) == planted);
    if (planted) CHECK(stats.headroom() < -3.0);
  }
  CHECK(quant::saturated_gradients(saturated.stats.tensors) > 0);
  CHECK(quant::saturated_gradients(now.stats.tensors) == 0);
}

TEST_CASE("delayed: an evaluation goes by history and leaves it as it is") {
  const TinyModel model("llama3", "bf16");
  const graph::Batch batch = random_batch(kLengths, 384);
  TinyRun run;
  run.recipe.activations = Activations::kCompute;
  run.recipe.scales = ScaleRecipe::kDelayed;
  quant::ScalingState state(run.recipe);
  run_recipe(model, run, batch, &state);
  state.end_step({}, false);
  const auto before = state.tensors().size();
  run.plan.mode = graph::PlanMode::kEval;
  ThreadPool pool(2);
  auto params = load_tiny(model, run, pool);
  graph::Executor eval(graph::make_plan(model.reader().model(), *params, plan_for(run)), *params,
                       pool);
  eval.set_scaling(&state);
  eval.run(batch, {});
  state.end_step({}, false);
  CHECK(state.tensors().size() == before);
  for (const auto& [name, t] : state.tensors()) CHECK(t.amax.size() == 1);
}

TEST_CASE("factors by layer: a shared X takes the largest of its layers'") {
  const TinyModel model("llama3", "bf16");
  const graph::Batch batch = random_batch(kLengths, 384);
  TinyRun run;
  run.recipe.activations = Activations::kCompute;
  run.recipe.scale_overrides =
      quant::parse_scale_overrides("*.1.self_attn.k_proj=4,*.1.mlp.down_proj.grad=0.25");
  for (const auto& [name, stats] : run_recipe(model, run, batch).stats.tensors) {
    INFO(name);
    const bool roomy = name.find("1.self_attn.q_proj.input") != std::string::npos ||
                       name.find("1.self_attn.k_proj.grad") != std::string::npos;
    const bool tight = name.find("1.mlp.down_proj.grad") != std::string::npos;
    CHECK((stats.headroom() >= 2.0) == roomy);
    CHECK((stats.headroom() < 0.0) == tight);
    CHECK((stats.counts.overflow > 0) == tight);
  }
  run.recipe.scale_overrides = quant::parse_scale_overrides("*.no_such=2");
  ThreadPool pool(1);
  CHECK_THROWS_WITH_AS(load_tiny(model, run, pool), doctest::Contains("matches no layer"), Error);
}
