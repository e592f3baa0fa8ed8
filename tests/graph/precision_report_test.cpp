#include "graph/precision_report.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "graph/tiny_models.h"

using namespace loongforge;
using namespace loongforge::test;

namespace {

graph::PrecisionRow row(const std::vector<graph::PrecisionRow>& rows, const std::string& tensor) {
  const auto it =
      std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.tensor == tensor; });
  REQUIRE_MESSAGE(it != rows.end(), tensor);
  return *it;
}

std::vector<graph::PrecisionRow> rows_of(const TinyModel& model,
                                         const graph::ParameterOptions& options) {
  ThreadPool pool(1);
  return graph::precision_rows(*graph::Parameters::declare(model.reader(), options, pool),
                               model.reader().model());
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
  for (const ir::TensorEntry& t : model.reader().model().tensors)
    tensors += !t.name.ends_with(".crc") && t.alias_of.empty();
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
  CHECK(table.find("model.layers.0-2.mlp.down_proj.weight\n    linear ") != std::string::npos);
  CHECK(table.find(" BF16 in the file, runs as e4m3 128x128\n    inputs e4m3 1x128; gradients e5m2 "
                   "1x128\n    --fp8_precision hybrid\n") != std::string::npos);
  CHECK(table.find("lm_head.weight\n    head ") != std::string::npos);
  for (size_t at = 0; at < table.size();) {
    const size_t end = table.find('\n', at);
    CHECK_MESSAGE(end - at <= 80, table.substr(at, end - at));
    at = end + 1;
  }
}

TEST_CASE("overrides decide weights and activations of their layers") {
  const TinyModel model("llama3", "bf16");
  graph::ParameterOptions o;
  o.lora = true;
  o.lora_options.rank = 4;
  o.precision_overrides = quant::parse_amp_overrides(
      "*.1.mlp.down_proj=bf16,*.q_proj=fp32,lm_head=fp8", "precision_override");
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
  // Layers that differ stand apart.
  const std::string table = graph::precision_table(rows);
  CHECK(table.find("model.layers.0,2.mlp.down_proj.weight\n") != std::string::npos);
  CHECK(table.find("model.layers.1.mlp.down_proj.weight\n") != std::string::npos);
}

TEST_CASE(
    "an FP8 file: its codes as they are where they are not trained, made anew where they are") {
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

TEST_CASE(
    "an override runs: its layer's results are those of that precision, the others' are not "
    "touched") {
  const graph::Batch batch = random_batch({37, 20}, 384);
  const TinyModel model("llama3", "bf16");
  // Every layer overridden to bf16 is the bf16 run, to the bit; to fp8 in a bf16 run the fp8 one.
  for (const auto& [precision, to] : {std::pair(quant::RunPrecision::kFp8, "bf16"),
                                      std::pair(quant::RunPrecision::kBf16, "fp8")}) {
    TinyRun overridden, plain;
    overridden.recipe.precision = precision;
    overridden.overrides =
        quant::parse_amp_overrides(std::string("*_proj=") + to, "precision_override");
    plain.recipe.precision = precision == quant::RunPrecision::kFp8 ? quant::RunPrecision::kBf16
                                                                    : quant::RunPrecision::kFp8;
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
  for (const auto& [name, stats] : a.stats.tensors)
    CHECK(name.find("up_proj") == std::string::npos);

  ThreadPool pool(1);
  TinyRun wrong;
  wrong.overrides = quant::parse_amp_overrides("*.no_such=bf16", "precision_override");
  CHECK_THROWS_WITH_AS(load_tiny(model, wrong, pool), doctest::Contains("matches no weight"),
                       Error);
  wrong.overrides = quant::parse_amp_overrides("*.q_proj=fp8", "precision_override");
  wrong.recipe.precision = quant::RunPrecision::kFp32;
  CHECK_THROWS_WITH_AS(load_tiny(model, wrong, pool), doctest::Contains("fp32 rounds nothing"),
                       Error);
}

TEST_CASE(
    "what is asked for and has no effect on the model is told; a pattern before another takes its "
    "tensors") {
  ThreadPool pool(1);
  const TinyModel plain("llama3", "bf16"), fp8("llama3", "fp8");
  const auto notes = [&](const TinyModel& model, const std::string& scales,
                         const std::string& precisions, auto&& change) {
    TinyRun run;
    run.full = false;
    run.recipe.scale_overrides = quant::parse_scale_overrides(scales);
    run.overrides = quant::parse_amp_overrides(precisions, "precision_override");
    change(run);
    return load_tiny(model, run, pool)->notes();
  };
  const auto as_it_is = [](TinyRun&) {};
  const auto computes = [](TinyRun& run) { run.recipe.activations = quant::Activations::kCompute; };
  const auto off = [](TinyRun& run) { run.recipe.activations = quant::Activations::kOff; };
  using Lines = std::vector<std::string>;
  CHECK(notes(plain, "*.down_proj=2,*.q_proj.input=2", "", as_it_is).empty());
  CHECK(notes(plain, "*.down_proj.grad=64", "", computes).empty());
  CHECK(notes(plain, "*.down_proj.grad=64", "", as_it_is) ==
        Lines{"--fp8_scale_override *.down_proj.grad has no effect: nothing that it matches is "
              "rounded to FP8 in this run"});
  CHECK(notes(plain, "*.down_proj.input=64", "", off).size() == 1);
  CHECK(notes(fp8, "*.down_proj.weight=64", "", as_it_is) ==
        Lines{"--fp8_scale_override *.down_proj.weight has no effect: nothing that it matches is "
              "rounded to FP8 in this run"});
  CHECK(notes(fp8, "*.down_proj=64", "", as_it_is).empty());  // its input
  const auto factor = [](TinyRun& run) {
    run.recipe.activations = quant::Activations::kOff;
    run.recipe.scale_factor = 2;
  };
  CHECK(notes(fp8, "", "", factor) ==
        Lines{"--fp8_scale_factor has no effect: nothing is rounded to FP8 in this run"});
  CHECK(notes(plain, "", "", factor).empty());
  CHECK(notes(plain, "", "*.layers.0.*=bf16", as_it_is).empty());
  const Lines kept = notes(fp8, "", "*.layers.0.*=bf16", as_it_is);
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].starts_with("--precision_override *.layers.0.*=bf16 leaves "));
  CHECK(kept[0].ends_with(
      " weights in the FP8 codes that the file has; inputs and gradients follow it"));

  for (const char* list : {"*_proj=bf16,*.q_proj=fp32", "*=bf16,*.down_proj=bf16"})
    CHECK_THROWS_WITH_AS(notes(plain, "", list, as_it_is), doctest::Contains("is never reached"),
                         Error);
  CHECK_THROWS_WITH_AS(notes(plain, "*=2,*.q_proj=4", "", as_it_is),
                       doctest::Contains("is never reached"), Error);
}
