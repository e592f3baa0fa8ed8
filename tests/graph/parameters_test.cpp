#include "graph/parameters.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "base/log.h"
#include "formats/quantized_source.h"
#include "graph/parameter_loader.h"
#include "graph/tiny_models.h"
#include "kernels/gemm.h"
#include "support/checkpoint_files.h"
#include "support/expect_error.h"

using namespace loongforge;
using namespace loongforge::test;

namespace {

std::vector<float> values(const graph::Weight& w) {
  std::vector<float> out(static_cast<size_t>(w.packed.n * w.packed.k));
  std::vector<int32_t> rows(static_cast<size_t>(w.packed.n));
  for (size_t r = 0; r < rows.size(); ++r) rows[r] = static_cast<int32_t>(r);
  kernels::gather_weight_rows(w.packed, rows.data(), w.packed.n,
                              {out.data(), w.packed.k, kernels::Elem::kF32});
  return out;
}

}  // namespace

TEST_CASE("a weight's packed values are the file's, exact or rounded to FP8") {
  const TinyModel exact("llama3", "fp32"), coded("llama3", "fp8");
  ThreadPool pool(2);
  graph::ParameterOptions o;
  o.recipe.precision = quant::RunPrecision::kFp32;
  const auto f32 = graph::Parameters::load(exact.reader(), o, pool);
  o.recipe.precision = quant::RunPrecision::kFp8;
  const auto from_codes = graph::Parameters::load(coded.reader(), o, pool);
  const auto quantised_here = graph::Parameters::load(exact.reader(), o, pool);
  const formats::SafetensorsFile source(data_dir() / "models/llama3/checkpoint/model.safetensors");
  for (const char* name : {"model.layers.0.self_attn.q_proj.weight",
                           "model.layers.2.mlp.down_proj.weight", "lm_head.weight"}) {
    const std::vector<float> want = source.read_f32(source.at(name));
    CHECK(values(f32->weight(name)) == want);
    const std::vector<float> codes = values(from_codes->weight(name));
    CHECK(codes == values(quantised_here->weight(name)));
    float amax = 0, worst = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      amax = std::max(amax, std::fabs(want[i]));
      worst = std::max(worst, std::fabs(codes[i] - want[i]) - std::fabs(want[i]) / 16);
    }
    CHECK(worst <= amax * 0x1p-14f);  // half a unit of three mantissa bits, but for subnormal codes
  }
}

TEST_CASE("FP8 weights with foreign scales run decoded: exact in fp32, rounded once to bf16 else") {
  ThreadPool pool(2);
  for (const char* layout : {"block", "channel", "tensor"}) {
    CAPTURE(layout);
    const TinyModel kept("formats/fp8/" + std::string(layout), "fp8"),
        exact("formats/fp8/" + std::string(layout), "fp32");
    graph::ParameterOptions o;
    o.recipe.precision = quant::RunPrecision::kFp32;
    const auto want = graph::Parameters::load(exact.reader(), o, pool);
    for (quant::RunPrecision format :
         {quant::RunPrecision::kFp32, quant::RunPrecision::kBf16, quant::RunPrecision::kFp8}) {
      o.recipe.precision = format;
      const auto got = graph::Parameters::load(kept.reader(), o, pool);
      const auto declared = graph::Parameters::declare(kept.reader(), o, pool);
      CHECK(got->decoded_weights() == 21);
      CHECK(got->decoded_note().find("21 FP8 weights") == 0);
      CHECK(declared->resident_bytes() == got->resident_bytes());
      const bool fp32 = format == quant::RunPrecision::kFp32;
      CHECK(got->weight("model.layers.0.mlp.up_proj.weight").packed.elem ==
            (fp32 ? kernels::Elem::kF32 : kernels::Elem::kBf16));
      for (const char* name :
           {"model.layers.0.mlp.up_proj.weight", "model.layers.2.self_attn.k_proj.weight"}) {
        std::vector<float> values_want = values(want->weight(name));
        std::vector<uint16_t> rounded(values_want.size());
        kernels::cast(values_want.data(), kernels::Elem::kF32, rounded.data(), kernels::Elem::kBf16,
                      static_cast<int64_t>(rounded.size()), true);
        if (!fp32)
          kernels::cast(rounded.data(), kernels::Elem::kBf16, values_want.data(),
                        kernels::Elem::kF32, static_cast<int64_t>(rounded.size()), false);
        CHECK(values(got->weight(name)) == values_want);
      }
    }
    // Trained ones get codes of their own.
    o.recipe.precision = quant::RunPrecision::kFp8;
    o.train_all = true;
    const auto full = graph::Parameters::load(kept.reader(), o, pool);
    CHECK(full->weight("model.layers.0.mlp.up_proj.weight").packed.elem == kernels::Elem::kE4M3);
    CHECK(full->decoded_weights() == 0);
    CHECK(full->decoded_note().empty());
  }
}

TEST_CASE("imported FP8 weights with powers of two in blocks of 128 run as their codes") {
  // 2^-46 becomes 2^-41 in LoongIR, the smallest that runs so; 2^-47 does not.
  for (const auto& [scale, codes] :
       {std::pair{0x1p-7f, true}, {0x1p-46f, true}, {0x1p-47f, false}, {0x1.8p-7f, false}}) {
    CAPTURE(scale);
    const TempDir dir;
    std::vector<MadeTensor> tensors = load_tensors(data_dir() / "formats/fp8/block");
    support::Json config = load_config(data_dir() / "formats/fp8/block");
    config.find("quantization_config")->set("weight_block_size", support::Json::Array{128, 128});
    for (MadeTensor& each : tensors) {
      if (!each.name.ends_with("_scale_inv")) continue;
      each.shape = {(each.shape[0] * 32 + 127) / 128, (each.shape[1] * 32 + 127) / 128};
      const std::vector<float> scales(static_cast<size_t>(each.shape[0] * each.shape[1]), scale);
      each.bytes.assign(reinterpret_cast<const uint8_t*>(scales.data()),
                        reinterpret_cast<const uint8_t*>(scales.data() + scales.size()));
    }
    write_checkpoint(dir / "hf", tensors, config);
    convert::ImportOptions in;
    in.input_path = dir / "hf";
    in.output_path = dir / "ir";
    convert::import_model(in);
    const ir::Reader reader(dir / "ir");
    ThreadPool pool(1);
    graph::ParameterOptions o;
    const auto params = graph::Parameters::load(reader, o, pool);
    const graph::Weight& w = params->weight("model.layers.0.mlp.up_proj.weight");
    CHECK(w.packed.elem == (codes ? kernels::Elem::kE4M3 : kernels::Elem::kBf16));
    CHECK(params->decoded_weights() == (codes ? 0 : 21));
    const auto source = formats::with_quantization(formats::open_hf_checkpoint(dir / "hf"),
                                                   formats::read_hf_config(dir / "hf/config.json"));
    std::vector<float> want = source->read_f32(source->at(w.name));
    // Their codes have three bits, so that bf16 holds code x 1.5 exactly; below 2^-55 it holds
    // zero.
    for (float& value : want) value = codes || std::fabs(value) >= 0x1p-55f ? value : 0.0f;
    CHECK(values(w) == want);
  }
}

TEST_CASE("declared parameters have the shapes and sizes of loaded ones, without their memory") {
  const TinyModel model("llama3", "fp8");
  ThreadPool pool(1);
  for (bool full : {true, false}) {
    graph::ParameterOptions o;
    o.train_all = full;
    o.lora = !full;
    const auto declared = graph::Parameters::declare(model.reader(), o, pool);
    const auto loaded = graph::Parameters::load(model.reader(), o, pool);
    CHECK(declared->resident_bytes() == loaded->resident_bytes());
    CHECK(declared->trainable_count() == loaded->trainable_count());
    CHECK(declared->weight("lm_head.weight").packed.data == nullptr);
  }
}

TEST_CASE("LoRA starts as no change: A uniform in +-1/sqrt(k), B zero, the same for a seed") {
  const TinyModel model("llama2", "bf16");
  ThreadPool pool(1);
  graph::ParameterOptions o;
  o.lora = true;
  o.lora_options.targets = {"q_proj", "v_proj"};
  const auto a = graph::Parameters::load(model.reader(), o, pool),
             b = graph::Parameters::load(model.reader(), o, pool);
  CHECK(a->adapters().size() == 4);
  for (const auto& [path, adapter] : a->adapters()) {
    const float bound = 1.0f / std::sqrt(static_cast<float>(adapter.k));
    float largest = 0;
    for (int64_t i = 0; i < adapter.rank * adapter.k; ++i) {
      largest = std::max(largest, std::fabs(a->master(adapter.a)[i]));
      REQUIRE(a->master(adapter.a)[i] == b->master(adapter.a)[i]);
    }
    CHECK(largest <= bound);
    CHECK(largest > 0.9f * bound);
    for (int64_t i = 0; i < adapter.rank * adapter.n; ++i)
      REQUIRE(a->master(adapter.b_t)[i] == 0.0f);
  }
  o.lora_options.targets = {"query"};
  LF_CHECK_ERROR(graph::Parameters::load(model.reader(), o, pool), ErrorCode::kUsage,
                 "it has: down_proj, gate_proj");
}

TEST_CASE(
    "without targets every linear of every family but the head has an adapter, and only they") {
  ThreadPool pool(1);
  for (const std::string& name : golden_models()) {
    CAPTURE(name);
    const TinyModel model(name, "bf16");
    graph::ParameterOptions o;
    o.lora = true;
    const auto params = graph::Parameters::declare(model.reader(), o, pool);
    std::set<std::string> want;
    for (int layer = 0; layer < model.reader().model().config.get_int("num_hidden_layers", 0);
         ++layer) {
      const std::string block = "model.layers." + std::to_string(layer) + ".";
      for (const char* leaf : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                               "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
        want.insert(block + leaf);
    }
    CHECK(params->adapters().size() == want.size());
    for (const auto& [path, adapter] : params->adapters()) CHECK(want.contains(path));
  }
}

TEST_CASE("module paths are PEFT's") {
  CHECK(graph::module_path("model.layers.0.mlp.up_proj.weight") == "model.layers.0.mlp.up_proj");
  CHECK(graph::module_leaf("model.layers.0.mlp.up_proj") == "up_proj");
}

TEST_CASE("without free huge pages one line says how many are needed, and the load goes on") {
  static std::vector<std::string> lines;
  lines.clear();
  set_log_sink([](LogLevel, std::string_view text) { lines.emplace_back(text); });
  const TinyModel model("llama2", "bf16");
  ThreadPool pool(1);
  graph::ParameterOptions o;
  o.pages = Pages::kHuge;
  const auto params = graph::Parameters::load(model.reader(), o, pool);
  set_log_sink(nullptr);
  CHECK(params->weight("lm_head.weight").packed.data != nullptr);
  if (huge_pages().free > 0) {
    MESSAGE("SKIPPED: this machine has free huge pages");
    return;
  }
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("LOONGFORGE_HUGEPAGE_ENABLE: the weights need ") != std::string::npos);
}

TEST_CASE("NF4 weights: four bits in memory, each value the file's code times its absmax") {
  const TinyModel model("llama3", "nf4"), exact(model, "fp32");
  ThreadPool pool(2);
  graph::ParameterOptions o;
  o.recipe.precision = quant::RunPrecision::kFp32;
  const auto coded = graph::Parameters::load(model.reader(), o, pool),
             plain = graph::Parameters::load(exact.reader(), o, pool);
  const auto declared = graph::Parameters::declare(model.reader(), o, pool);
  CHECK(declared->resident_bytes() == coded->resident_bytes());
  const formats::SafetensorsFile source(data_dir() / "models/llama3/checkpoint/model.safetensors");
  for (const char* name :
       {"model.layers.0.self_attn.q_proj.weight", "model.layers.2.mlp.down_proj.weight"}) {
    const graph::Weight& w = coded->weight(name);
    CHECK(w.packed.elem == kernels::Elem::kNf4);
    const std::vector<float> got = values(w);
    CHECK(got == values(plain->weight(name)));
    // Half of the table's widest gap, of the largest value in the block.
    const std::vector<float> want = source.read_f32(source.at(name));
    const auto cols = static_cast<size_t>(w.packed.k);
    size_t far = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const size_t row = i / cols * cols, begin = row + i % cols / 64 * 64,
                   end = std::min(row + cols, begin + 64);
      float absmax = 0;
      for (size_t j = begin; j < end; ++j) absmax = std::max(absmax, std::fabs(want[j]));
      far += std::fabs(got[i] - want[i]) > 0.1520f * absmax;
    }
    CHECK(far == 0);
  }
  CHECK(coded->weight("lm_head.weight").packed.elem != kernels::Elem::kNf4);
  o.train_all = true;
  LF_CHECK_ERROR(graph::Parameters::load(model.reader(), o, pool), ErrorCode::kUsage, "NF4");
}
