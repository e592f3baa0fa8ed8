#include "graph/precision_report.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "graph/tiny_models.h"

using namespace loongforge;
using namespace loongforge::test;

namespace {

graph::PrecisionRow row(const std::vector<graph::PrecisionRow>& rows, const std::string& tensor) {
  const auto it = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.tensor == tensor; });
  REQUIRE_MESSAGE(it != rows.end(), tensor);
  return *it;
}

std::vector<graph::PrecisionRow> rows_of(const TinyModel& model, const graph::ParameterOptions& options) {
  ThreadPool pool(1);
  return graph::precision_rows(*graph::Parameters::declare(model.reader(), options, pool), model.reader().model());
}

}  // namespace

TEST_CASE("every tensor of the model, with what it runs as and why") {
  const TinyModel model("llama3", "bf16");
  graph::ParameterOptions o;
  o.train_all = true;
  o.recipe.precision = quant::RunPrecision::kHybrid;
  o.recipe.activations = quant::Activations::kCompute;
  const auto rows = rows_of(model, o);
  size_t tensors = 0;
  for (const ir::TensorEntry& t : model.reader().model().tensors) tensors += !t.name.ends_with(".crc") && t.alias_of.empty();
  CHECK(rows.size() == tensors);
  for (const auto& r : rows) CHECK_FALSE(r.reason.empty());
  const auto down = row(rows, "model.layers.1.mlp.down_proj.weight");
  CHECK(down.weight == "e4m3 128x128");
  CHECK(down.inputs == "e4m3 1x128");
  CHECK(down.gradients == "e5m2 1x128");
  CHECK(down.reason == "--fp8_precision hybrid");
  CHECK(row(rows, "lm_head.weight").reason == "the head stays in high precision");
  CHECK(row(rows, "lm_head.weight").weight == "bf16");
  CHECK(row(rows, "model.norm.weight").weight == "fp32");
  const std::string table = graph::precision_table(rows);
  CHECK(static_cast<size_t>(std::count(table.begin(), table.end(), '\n')) == rows.size() + 1);
  CHECK(table.find("e5m2 1x128  --fp8_precision hybrid\n") != std::string::npos);
}

TEST_CASE("overrides decide weights and activations of their layers") {
  const TinyModel model("llama3", "bf16");
  graph::ParameterOptions o;
  o.lora = true;
  o.lora_options.rank = 4;
  o.precision_overrides =
      quant::parse_amp_overrides("*.1.mlp.down_proj=bf16,*.q_proj=fp32,lm_head=fp8", "precision_override");
  const auto rows = rows_of(model, o);
  CHECK(row(rows, "model.layers.0.mlp.down_proj.weight").inputs == "bf16, saved as e4m3 1x128");
  const auto down = row(rows, "model.layers.1.mlp.down_proj.weight");
  CHECK(down.weight == "bf16");
  CHECK(down.inputs == "bf16");
  CHECK(down.reason == "--precision_override *.1.mlp.down_proj=bf16");
  const auto q = row(rows, "model.layers.2.self_attn.q_proj.weight");
  CHECK(q.inputs == "fp32");
  CHECK(q.gradients == "fp32");
  CHECK(row(rows, "lm_head.weight").weight == "e4m3 128x128");
  CHECK(row(rows, "model.layers.0.self_attn.v_proj.lora").role == "adapter");
}

TEST_CASE("an FP8 file: its codes as they are where they are not trained, made anew where they are") {
  const TinyModel model("llama3", "fp8");
  graph::ParameterOptions o;
  o.recipe.precision = quant::RunPrecision::kE5M2;
  o.recipe.scales = quant::ScaleRecipe::kTensorCurrent;
  o.lora = true;
  const auto kept = row(rows_of(model, o), "model.layers.0.mlp.down_proj.weight");
  CHECK(kept.weight == "e4m3 128x128");
  CHECK(kept.reason == "--fp8_precision e5m2; the file's FP8 codes as they are");
  o.lora = false;
  o.train_all = true;
  CHECK(row(rows_of(model, o), "model.layers.0.mlp.down_proj.weight").weight == "e5m2 tensor");
}

TEST_CASE("an override runs: its layer's results are those of that precision, the others' are not touched") {
  const graph::Batch batch = random_batch({37, 20}, 384);
  const TinyModel model("llama3", "bf16");
  // Every layer overridden to bf16 is the bf16 run, to the bit; to fp8 in a bf16 run the fp8 one.
  for (const auto& [precision, to] : {std::pair(quant::RunPrecision::kFp8, "bf16"), std::pair(quant::RunPrecision::kBf16, "fp8")}) {
    TinyRun overridden, plain;
    overridden.recipe.precision = precision;
    overridden.overrides = quant::parse_amp_overrides(std::string("*_proj=") + to, "precision_override");
    plain.recipe.precision = precision == quant::RunPrecision::kFp8 ? quant::RunPrecision::kBf16 : quant::RunPrecision::kFp8;
    // By default small weights stay bf16 in an FP8 run: asked for as well, they are FP8 there too.
    if (plain.recipe.fp8()) plain.overrides = overridden.overrides;
    const TinyResult a = run_tiny(model, overridden, batch), b = run_tiny(model, plain, batch);
    CHECK(a.logits == b.logits);
    CHECK(a.gradients == b.gradients);
  }
  // Part of the joined linears: apart from the others, and near the run without.
  TinyRun part, none;
  part.overrides = quant::parse_amp_overrides("*.q_proj=fp32,*.up_proj=bf16", "precision_override");
  const TinyResult a = run_tiny(model, part, batch), b = run_tiny(model, none, batch);
  CHECK(a.stats.loss_sum == doctest::Approx(b.stats.loss_sum).epsilon(0.02));
  CHECK_FALSE(a.logits == b.logits);
  for (const auto& [name, stats] : a.stats.tensors) CHECK(name.find("up_proj") == std::string::npos);

  ThreadPool pool(1);
  TinyRun wrong;
  wrong.overrides = quant::parse_amp_overrides("*.no_such=bf16", "precision_override");
  CHECK_THROWS_WITH_AS(load_tiny(model, wrong, pool), doctest::Contains("matches no weight"), Error);
  wrong.overrides = quant::parse_amp_overrides("*.q_proj=fp8", "precision_override");
  wrong.recipe.precision = quant::RunPrecision::kFp32;
  CHECK_THROWS_WITH_AS(load_tiny(model, wrong, pool), doctest::Contains("fp32 rounds nothing"), Error);
}
