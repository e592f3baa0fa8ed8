#include "formats/quantized_source.h"

#include <doctest/doctest.h>

#include <cmath>

#include "support/checkpoint_files.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;
using namespace loongforge::formats;
using support::Json;
using tensor::DType;
using test::MadeTensor;
using test::TempDir;

namespace {

std::filesystem::path golden(const char* layout) {
  return test::data_dir() / "formats/fp8" / layout;
}

std::unique_ptr<QuantizedSource> open(const std::filesystem::path& folder) {
  auto source =
      with_quantization(open_hf_checkpoint(folder), read_hf_config(folder / "config.json"));
  REQUIRE(dynamic_cast<QuantizedSource*>(source.get()) != nullptr);
  return std::unique_ptr<QuantizedSource>(static_cast<QuantizedSource*>(source.release()));
}

}  // namespace

TEST_CASE("quantized source: companions are hidden, plain tensors are as stored") {
  for (const char* layout : {"block", "channel", "tensor"}) {
    CAPTURE(layout);
    const auto source = open(golden(layout));
    const auto raw = open_hf_checkpoint(golden(layout));
    size_t quantized = 0;
    for (const StoredTensor& tensor : source->tensors()) {
      const std::string& name = tensor.name;
      CAPTURE(name);
      CHECK(name.ends_with(".weight"));
      CHECK(source->readable_f32(tensor));
      CHECK(tensor.shape == raw->at(name).shape);
      const QuantizedTensor* how = source->quantized(tensor);
      CHECK((how != nullptr) == (name.find("_proj") != std::string::npos));
      if (how == nullptr) {
        CHECK(test::stored_bytes(*source, name) == test::stored_bytes(*raw, name));
        CHECK(source->read_f32(tensor) == raw->read_f32(raw->at(name)));
        continue;
      }
      ++quantized;
      CHECK(how->codes == source->stored().find(name));
      CHECK(!tensor.dtype.has_value());
      CHECK(how->companions.size() == (std::string(layout) == "tensor" ? 1u : 0u));
      LF_CHECK_ERROR(test::stored_bytes(*source, name), ErrorCode::kFailed, "quantised");
    }
    CHECK(quantized == 21);
    CHECK(source->tensors().size() == 30);
  }
}

TEST_CASE("quantized source: rows read apart equal the whole") {
  for (const char* layout : {"block", "channel", "tensor"}) {
    const auto source = open(golden(layout));
    for (const char* name :
         {"model.layers.1.mlp.gate_proj.weight", "model.layers.2.self_attn.k_proj.weight"}) {
      const StoredTensor& tensor = source->at(name);
      const std::vector<float> whole = source->read_f32(tensor);
      for (int64_t r0 = 0; r0 < tensor.rows(); r0 += 7) {
        const int64_t r1 = std::min(tensor.rows(), r0 + 7);
        std::vector<float> rows(static_cast<size_t>((r1 - r0) * tensor.cols()));
        source->read_rows_f32(tensor, r0, r1, rows);
        CHECK(std::equal(rows.begin(), rows.end(), whole.begin() + r0 * tensor.cols()));
      }
    }
  }
}

TEST_CASE("quantized source: unknown methods are named with those that are known") {
  const auto refuse = [](const char* config, const char* text) {
    LF_CHECK_ERROR(QuantizedSource(open_hf_checkpoint(golden("block")), Json::parse(config, "t"),
                                   "config.json"),
                   ErrorCode::kBadData, text);
  };
  refuse(R"({"quant_method": "gptq"})",
         "config.json: quantization_config.quant_method is \"gptq\", which cannot be read; known: "
         "fp8, compressed-tensors, fbgemm_fp8, bitsandbytes");
  refuse("{}", "quant_method is missing");
  refuse("[]", "not an object");
  refuse(R"({"quant_method": 8})", "quant_method");
}

TEST_CASE("quantized source: without quantization_config the source is itself") {
  HfConfig config;
  auto source = open_hf_checkpoint(test::model_dir("llama2") / "checkpoint");
  const TensorSource* before = source.get();
  source = with_quantization(std::move(source), config);
  CHECK(source.get() == before);
}
