// The golden models as LoongIR, their batches, and runs over them: what the tests of graph, train
// and generate share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/pool.h"
#include "convert/export.h"
#include "convert/import.h"
#include "formats/safetensors.h"
#include "graph/executor.h"
#include "graph/validate.h"
#include "ir/reader.h"
#include "support/data.h"
#include "support/temp_dir.h"

namespace loongforge::test {

class TinyModel {
 public:
  // name: a folder of tests/data/models, or a checkpoint's path inside tests/data; quantize: nf4,
  // fp8, bf16 or fp32.
  TinyModel(const std::string& name, const std::string& quantize) : folder_(dir_.path() / "ir") {
    convert::ImportOptions o;
    o.model_name = name;
    o.input_path = data_dir() / "models" / name / "checkpoint";
    if (!std::filesystem::exists(o.input_path)) o.input_path = data_dir() / name;
    o.output_path = folder_;
    o.quantize = quantize;
    convert::import_model(o);
    reader_ = std::make_unique<ir::Reader>(folder_);
  }
  // The weights that `from` stands for, decoded and stored in bf16 or fp32.
  TinyModel(const TinyModel& from, const std::string& dtype) : folder_(dir_.path() / "ir") {
    convert::ExportOptions out;
    out.input_path = from.folder();
    out.output_path = dir_.path() / "hf";
    out.dtype = dtype;
    convert::export_model(out);
    convert::ImportOptions in;
    in.input_path = out.output_path;
    in.output_path = folder_;
    in.quantize = dtype;
    convert::import_model(in);
    reader_ = std::make_unique<ir::Reader>(folder_);
  }
  const ir::Reader& reader() const { return *reader_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  TempDir dir_;
  std::filesystem::path folder_;
  std::unique_ptr<ir::Reader> reader_;
};

inline int64_t vocab_of(const TinyModel& model) {
  return graph::validate(model.reader().model(), "tiny");
}

// Documents of the given lengths with pseudo-random tokens; every second token is a target.
inline graph::Batch random_batch(const std::vector<int64_t>& lengths, int64_t vocab,
                                 uint32_t seed = 7) {
  graph::Batch b;
  uint32_t state = seed;
  auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  for (int64_t length : lengths) {
    b.documents.push_back({b.tokens(), length});
    for (int64_t t = 0; t < length; ++t) {
      b.ids.push_back(static_cast<int32_t>(next() % static_cast<uint32_t>(vocab)) * 2);
      const bool target = t % 2 == 1;
      b.targets.push_back(target ? static_cast<int32_t>(next() % static_cast<uint32_t>(vocab)) * 2
                                 : -1);
      b.positions.push_back(static_cast<int32_t>(t));
      b.valid += target;
    }
  }
  return b;
}

struct TinyRun {
  quant::Recipe recipe;
  std::vector<quant::AmpRule> overrides;
  bool full = true;
  double dropout = 0;
  int threads = 2;
  graph::PlanOptions plan;
};

struct TinyResult {
  graph::RunStats stats;
  std::vector<float> gradients, logits, row_loss;
};

// B of LoRA is zero at first, which would hide half of the gradients: it gets values of its own.
inline void fill_adapters(graph::Parameters& params, ThreadPool& pool) {
  for (const auto& [path, a] : params.adapters()) {
    float* b = params.master(a.b_t);
    for (int64_t i = 0; i < a.rank * a.n; ++i)
      b[i] = 0.02f * static_cast<float>((i * 37 + 11) % 17 - 8);
  }
  params.refresh(pool, nullptr);
}

inline std::unique_ptr<graph::Parameters> load_tiny(const TinyModel& model, const TinyRun& run,
                                                    ThreadPool& pool) {
  graph::ParameterOptions o;
  o.recipe = run.recipe;
  o.precision_overrides = run.overrides;
  o.train_all = run.full;
  o.lora = !run.full;
  o.lora_options.rank = 4;
  o.lora_options.dropout = run.dropout;
  auto params = graph::Parameters::load(model.reader(), o, pool);
  fill_adapters(*params, pool);
  return params;
}

inline graph::PlanOptions plan_for(const TinyRun& run) {
  graph::PlanOptions plan = run.plan;
  plan.recipe = run.recipe;
  plan.max_positions = 1024;
  return plan;
}

inline TinyResult run_tiny(const TinyModel& model, const TinyRun& run, const graph::Batch& batch,
                           const graph::MaskSource* masks = nullptr,
                           graph::Profile* profile = nullptr) {
  ThreadPool pool(run.threads);
  auto params = load_tiny(model, run, pool);
  graph::Executor executor(graph::make_plan(model.reader().model(), *params, plan_for(run)),
                           *params, pool);
  TinyResult result;
  const int64_t vocab =
      params->weight(model.reader().model().graph.nodes.back().params.at("weight")).packed.n;
  result.gradients.assign(static_cast<size_t>(params->trainable_floats()), 0.0f);
  result.logits.resize(batch.ids.size() * static_cast<size_t>(vocab));
  graph::RunRequest request;
  request.gradients = result.gradients.data();
  request.all_logits = result.logits.data();
  request.row_loss = &result.row_loss;
  request.masks = masks;
  request.profile = profile;
  result.stats = executor.run(batch, request);
  return result;
}

}  // namespace loongforge::test
