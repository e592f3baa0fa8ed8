#include "train/adapter_io.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/file.h"
#include "convert/export.h"
#include "formats/peft.h"
#include "graph/tiny_models.h"
#include "graph/validate.h"
#include "support/expect_error.h"

using namespace loongforge;
using namespace loongforge::test;

namespace {

constexpr const char* kFamilies[] = {"llama2", "llama3", "smollm2", "mistral", "qwen2", "qwen3"};

std::filesystem::path model_dir(const std::string& family) {
  return data_dir() / "models" / family;
}

// Logits of the model in fp32, with the adapter where one is named.
std::vector<float> logits(const ir::Reader& reader, const std::filesystem::path& adapter,
                          const graph::Batch& batch) {
  ThreadPool pool(2);
  TinyRun run;
  run.recipe.precision = quant::RunPrecision::kFp32;
  graph::ParameterOptions o;
  o.recipe = run.recipe;
  if (!adapter.empty()) {
    o.lora = true;
    o.lora_options = train::adapter_options(adapter);
  }
  auto params = graph::Parameters::load(reader, o, pool);
  if (!adapter.empty()) train::load_adapter(adapter, *params, pool);
  graph::PlanOptions plan = plan_for(run);
  plan.mode = graph::PlanMode::kEval;
  graph::Executor executor(graph::make_plan(reader.model(), *params, plan), *params, pool);
  std::vector<float> out(batch.ids.size() *
                         static_cast<size_t>(graph::validate(reader.model(), "test")));
  graph::RunRequest request;
  request.all_logits = out.data();
  executor.run(batch, request);
  return out;
}

double relative_l2(const std::vector<float>& got, const std::vector<float>& want) {
  REQUIRE(got.size() == want.size());
  double diff = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    diff += (double{got[i]} - want[i]) * (double{got[i]} - want[i]);
    norm += double{want[i]} * want[i];
  }
  return std::sqrt(diff / norm);
}

convert::ExportOptions export_options(const std::filesystem::path& from,
                                      const std::filesystem::path& adapter,
                                      const std::filesystem::path& to) {
  convert::ExportOptions o;
  o.input_path = from;
  o.adapter = adapter;
  o.output_path = to;
  return o;
}

// Into Parameters and out again, as a run of no steps would.
void read_and_save(const ir::Reader& reader, const std::filesystem::path& from,
                   const std::filesystem::path& to) {
  ThreadPool pool(1);
  graph::ParameterOptions o;
  o.lora = true;
  o.lora_options = train::adapter_options(from);
  auto params = graph::Parameters::load(reader, o, pool);
  train::load_adapter(from, *params, pool);
  train::save_adapter(to, "", *params);
}

void check_same_files(const std::filesystem::path& a, const std::filesystem::path& b) {
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"})
    CHECK(read_text(a / name) == read_text(b / name));
}

}  // namespace

TEST_CASE("an untouched adapter of every family goes out as it came, trained on or exported") {
  for (const char* family : kFamilies) {
    CAPTURE(family);
    const TinyModel model(family, "bf16");
    TempDir dir;
    read_and_save(model.reader(), model_dir(family) / "adapter", dir.path());
    check_same_files(dir.path(), model_dir(family) / "adapter");
    convert::ExportOptions o =
        export_options(model.folder(), model_dir(family) / "adapter", dir / "peft");
    o.format = "peft";
    convert::export_model(o);
    CHECK(read_text(dir / "peft/adapter_model.safetensors") ==
          read_text(model_dir(family) / "adapter/adapter_model.safetensors"));
    support::Json want =
        support::read_json((model_dir(family) / "adapter/adapter_config.json").string());
    want.set("base_model_name_or_path", family);  // it named none
    CHECK(support::read_json((dir / "peft/adapter_config.json").string()) == want);
  }
}

TEST_CASE("merged weights give the logits of model and adapter") {
  for (const char* family : kFamilies) {
    CAPTURE(family);
    const TinyModel model(family, "fp32");
    TempDir dir;
    convert::ExportOptions o =
        export_options(model.folder(), model_dir(family) / "adapter", dir / "hf");
    o.dtype = "fp32";
    o.merge = true;
    convert::export_model(o);
    convert::ImportOptions in;
    in.input_path = dir / "hf";
    in.output_path = dir / "ir";
    in.quantize = "fp32";
    convert::import_model(in);
    const graph::Batch batch =
        random_batch({24, 9}, graph::validate(model.reader().model(), "test"));
    const std::vector<float> together =
        logits(model.reader(), model_dir(family) / "adapter", batch);
    const ir::Reader merged(dir / "ir");
    CHECK(relative_l2(logits(merged, {}, batch), together) < 1e-5);
    CHECK(relative_l2(logits(model.reader(), {}, batch), together) >
          1e-2);  // the adapter does something
  }
}

TEST_CASE("patterns, layers and rslora give PEFT's logits and go out as they came") {
  const TinyModel model("llama3", "fp32");
  const std::filesystem::path from = data_dir() / "formats/adapter_patterns";
  const formats::SafetensorsFile golden(from / "logits.safetensors");
  std::vector<uint8_t> raw(golden.at("input_ids").bytes);
  golden.read_range(golden.at("input_ids"), 0, raw);
  graph::Batch batch;
  for (size_t i = 0; i < raw.size(); i += 4) {
    batch.positions.push_back(static_cast<int32_t>(i / 4));
    batch.ids.push_back((raw[i] | raw[i + 1] << 8) * 2);
    batch.targets.push_back(4);
    ++batch.valid;
  }
  batch.documents.push_back({0, batch.tokens()});
  CHECK(relative_l2(logits(model.reader(), from, batch), golden.read_f32(golden.at("logits"))) <
        1e-5);
  TempDir dir;
  read_and_save(model.reader(), from, dir.path());
  check_same_files(dir.path(), from);
  // Merged as well.
  convert::ExportOptions o = export_options(model.folder(), from, dir / "hf");
  o.dtype = "fp32";
  o.merge = true;
  CHECK(convert::export_model(o).merged == 6);
  convert::ImportOptions in;
  in.input_path = dir / "hf";
  in.output_path = dir / "ir";
  in.quantize = "fp32";
  convert::import_model(in);
  CHECK(relative_l2(logits(ir::Reader(dir / "ir"), {}, batch),
                    golden.read_f32(golden.at("logits"))) < 1e-5);
}

TEST_CASE("an adapter that was read is written back with the same tensors") {
  const TinyModel model("llama3", "bf16");
  ThreadPool pool(1);
  const auto from = data_dir() / "models" / "llama3" / "adapter";
  graph::ParameterOptions o;
  o.lora = true;
  o.lora_options = train::adapter_options(from);
  CHECK(o.lora_options.rank == 4);
  auto params = graph::Parameters::load(model.reader(), o, pool);
  train::load_adapter(from, *params, pool);
  TempDir dir;
  train::save_adapter(dir.path(), "", *params);
  CHECK(read_text(dir / "adapter_model.safetensors") ==
        read_text(from / "adapter_model.safetensors"));
}

TEST_CASE("another model's adapter is refused by the module's name") {
  const TinyModel model("smollm2", "bf16");
  ThreadPool pool(1);
  const auto from = data_dir() / "models" / "llama3" / "adapter";
  graph::ParameterOptions o;
  o.lora = true;
  o.lora_options = train::adapter_options(from);
  auto params = graph::Parameters::load(model.reader(), o, pool);
  LF_CHECK_ERROR(train::load_adapter(from, *params, pool), ErrorCode::kBadData, "model.layers.0");
}
