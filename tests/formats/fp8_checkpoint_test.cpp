// FP8 layouts: values against the formula code x scale, and configurations and tensors that do not
// fit each other.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/quantized_source.h"
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

// OCP's E4M3, by its definition.
double e4m3(uint8_t code) {
  const int e = (code >> 3) & 15, m = code & 7;
  const double magnitude = e == 0 ? std::ldexp(m / 8.0, -6) : std::ldexp(1.0 + m / 8.0, e - 7);
  return (code & 128) != 0 ? -magnitude : magnitude;
}

std::vector<uint8_t> bytes_of_floats(const std::vector<float>& values) {
  std::vector<uint8_t> out(values.size() * 4);
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

MadeTensor f32(const std::string& name, std::vector<int64_t> shape, std::vector<float> values) {
  return {name, DType::kF32, std::move(shape), bytes_of_floats(values)};
}

MadeTensor codes(const std::string& name, int64_t rows, int64_t cols) {
  MadeTensor out{name, DType::kF8E4M3, {rows, cols}, {}};
  for (int64_t i = 0; i < rows * cols; ++i)
    out.bytes.push_back(static_cast<uint8_t>((i * 37 + 11) % 127 + (i % 3 == 0 ? 128 : 0)));
  return out;
}

std::unique_ptr<QuantizedSource> make(const TempDir& dir, const std::vector<MadeTensor>& tensors,
                                      const std::string& config) {
  test::write_checkpoint(dir / "m", tensors, Json::object());
  return std::make_unique<QuantizedSource>(open_hf_checkpoint(dir / "m"),
                                           Json::parse(config, "config.json"), "config.json");
}

std::string compressed(const std::string& weights, const std::string& more = "") {
  return R"({"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"], )" +
         more + R"("config_groups": {"group_0": {"targets": ["Linear"], "weights": )" + weights +
         "}}}";
}

constexpr const char* kBlocks =
    R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [3, 4]})";

}  // namespace

TEST_CASE("fp8: golden layouts are code x scale, rounded once to fp32") {
  for (const char* layout : {"block", "channel", "tensor"}) {
    CAPTURE(layout);
    const std::filesystem::path folder = test::data_dir() / "formats/fp8" / layout;
    const auto source =
        with_quantization(open_hf_checkpoint(folder), read_hf_config(folder / "config.json"));
    const auto raw = open_hf_checkpoint(folder);
    for (const StoredTensor& tensor : source->tensors()) {
      const StoredTensor& stored = raw->at(tensor.name);
      if (stored.dtype != DType::kF8E4M3) continue;
      const StoredTensor* scale = raw->find(tensor.name + "_scale_inv");
      if (scale == nullptr) scale = &raw->at(tensor.name + "_scale");
      const std::vector<float> scales = raw->read_f32(*scale);
      const std::vector<uint8_t> bytes = test::stored_bytes(*raw, tensor.name);
      const std::vector<float> got = source->read_f32(tensor);
      const int64_t cols = tensor.cols();
      size_t wrong = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        const int64_t r = static_cast<int64_t>(i) / cols, c = static_cast<int64_t>(i) % cols;
        size_t s = 0;
        if (std::string(layout) == "block")
          s = static_cast<size_t>(r / 32 * ((cols + 31) / 32) + c / 32);
        if (std::string(layout) == "channel") s = static_cast<size_t>(r);
        // Exact in double, so that this rounds once as the product in fp32 does.
        wrong += got[i] != static_cast<float>(e4m3(bytes[i]) * double{scales[s]});
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("fp8: ragged blocks, scales of every stored type and rank") {
  TempDir dir;
  const auto check = [&](std::vector<MadeTensor> tensors, const std::string& config, int64_t br,
                         int64_t bc, const std::vector<float>& scales) {
    const auto source = make(dir, tensors, config);
    const StoredTensor& tensor = source->at("a.weight");
    const std::vector<float> got = source->read_f32(tensor);
    const int64_t cols = tensor.cols(), blocks = (cols + bc - 1) / bc;
    for (int64_t r = 0; r < tensor.rows(); ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        const uint8_t code = tensors[0].bytes[static_cast<size_t>(r * cols + c)];
        const double want =
            e4m3(code) * double{scales[static_cast<size_t>(r / br * blocks + c / bc)]};
        CHECK(got[static_cast<size_t>(r * cols + c)] == static_cast<float>(want));
      }
    }
  };
  const std::vector<float> six = {0.5f, 3.0f, 1e-3f, -2.0f, 0.0f, 7.25f};
  check({codes("a.weight", 5, 9), f32("a.weight_scale_inv", {2, 3}, six)}, kBlocks, 3, 4, six);
  check({codes("a.weight", 6, 9), f32("a.weight_scale", {2, 3}, six)}, kBlocks, 3, 4, six);
  const std::vector<float> five = {0.5f, 3.0f, 0.25f, -2.0f, 7.25f};
  MadeTensor half{"a.weight_scale", DType::kBF16, {5, 1}, {}};
  for (float value : five) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    half.bytes.push_back(static_cast<uint8_t>(bits >> 16));
    half.bytes.push_back(static_cast<uint8_t>(bits >> 24));
  }
  const std::string channel = R"({"num_bits": 8, "type": "float", "strategy": "channel"})";
  check({codes("a.weight", 5, 9), half}, compressed(channel), 1, 9, five);
  check({codes("a.weight", 5, 9), f32("a.weight_scale", {5}, five)}, compressed(channel), 1, 9,
        five);
  check({codes("a.weight", 5, 9), f32("a.weight_scale", {5, 1}, five),
         f32("a.input_scale_ub", {1}, {1200.0f})},
        R"({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0})", 1, 9, five);
  const std::string whole = R"({"num_bits": 8, "type": "float", "strategy": "tensor"})";
  for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {1}, {1, 1}})
    check({codes("a.weight", 5, 9), f32("a.weight_scale", shape, {0.3f})}, compressed(whole), 5, 9,
          {0.3f});
  check({codes("a.weight", 5, 9), f32("a.weight_scale", {}, {0.3f})},
        R"({"quant_method": "fp8", "activation_scheme": "static"})", 5, 9, {0.3f});
  check({codes("a.weight", 5, 9), f32("a.weight_scale_inv", {}, {0.3f})},
        R"({"quant_method": "fp8", "weight_block_size": null})", 5, 9, {0.3f});
  check({codes("a.weight", 200, 9), f32("a.weight_scale_inv", {2, 1}, {0.3f, 4.0f})},
        R"({"quant_method": "fp8"})", 128, 128, {0.3f, 4.0f});
  check({codes("a.weight", 2, 9), f32("a.weight_scale", {2, 3}, six)},
        compressed(R"({"num_bits": 8, "type": "float", "strategy": "group", "group_size": 4})"), 1,
        4, six);
  check({codes("a.weight", 5, 9), f32("a.weight_scale", {2, 3}, six)},
        compressed(
            R"({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [3, 4]})"),
        3, 4, six);
}

TEST_CASE("fp8: NaN codes stay NaN") {
  TempDir dir;
  MadeTensor weight{"a.weight", DType::kF8E4M3, {1, 2}, {0x7F, 0xFF}};
  const auto source = make(dir, {weight, f32("a.weight_scale_inv", {1, 1}, {2.0f})}, kBlocks);
  for (float value : source->read_f32(source->at("a.weight"))) CHECK(std::isnan(value));
}

TEST_CASE("fp8: groups of compressed-tensors by name") {
  TempDir dir;
  const std::string config = R"({"quant_method": "compressed-tensors", "format": "float-quantized",
    "config_groups": {
      "g0": {"targets": ["re:.*down_proj"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}},
      "g1": {"targets": ["b.up_proj"], "weights": {"num_bits": 8, "type": "float", "strategy": "tensor"}}}})";
  const std::vector<MadeTensor> tensors = {
      codes("b.down_proj.weight", 2, 3), f32("b.down_proj.weight_scale", {2, 1}, {1.0f, 2.0f}),
      codes("b.up_proj.weight", 2, 3), f32("b.up_proj.weight_scale", {1}, {1.0f})};
  const auto source = make(dir, tensors, config);
  CHECK(source->quantized(source->at("b.down_proj.weight"))->block_rows == 1);
  CHECK(source->quantized(source->at("b.up_proj.weight"))->block_rows == 2);
  std::vector<MadeTensor> other = tensors;
  other.push_back(codes("b.gate.weight", 2, 3));
  other.push_back(f32("b.gate.weight_scale", {1}, {1.0f}));
  LF_CHECK_ERROR(make(dir, other, config), ErrorCode::kBadData,
                 "b.gate.weight: is F8_E4M3, but quantization_config leaves that module");
}

TEST_CASE("fp8: what does not fit together is refused by name") {
  TempDir dir;
  const std::vector<float> six(6, 1.0f);
  const auto refuse = [&](const std::vector<MadeTensor>& tensors, const std::string& config,
                          const char* text) {
    LF_CHECK_ERROR(make(dir, tensors, config), ErrorCode::kBadData, text);
  };
  const MadeTensor w = codes("a.weight", 5, 9), s = f32("a.weight_scale_inv", {2, 3}, six);
  refuse({w}, kBlocks, "a.weight: is F8_E4M3 and has no weight_scale_inv");
  refuse({s}, kBlocks, "a.weight_scale_inv: belongs to a.weight, which is absent");
  refuse({f32("a.input_scale", {}, {1.0f})}, kBlocks, "a.input_scale: belongs to a.weight");
  refuse({f32("a.weight", {5, 9}, std::vector<float>(45)), s}, kBlocks,
         "which is F32, not F8_E4M3");
  refuse({w, s, f32("a.weight_scale", {}, {1.0f})}, kBlocks, "stands beside a.weight_scale");
  refuse(
      {w, f32("a.weight_scale_inv", {3, 2}, six)}, kBlocks,
      "has the shape [3, 2], but quantization_config means for a.weight [5, 9] blocks of [3, 4]: "
      "[2, 3]");
  refuse({w, f32("a.weight_scale_inv", {1}, {1.0f})}, kBlocks, "blocks of [3, 4]");
  refuse({w, f32("a.weight_scale", {6}, six)},
         R"({"quant_method": "fp8", "weight_block_size": null})",
         "one scale per tensor or per row");
  refuse({w, s}, R"({"quant_method": "fbgemm_fp8"})", "one scale per row: [5, 1]");
  refuse({w, {"a.weight_scale_inv", DType::kI32, {2, 3}, bytes_of_floats(six)}}, kBlocks,
         "has the type I32, scales are F32, BF16 or F16");
  refuse({{"a.weight", DType::kF8E5M2, {5, 9}, w.bytes}, s}, kBlocks,
         "F8_E5M2, FP8 weights are F8_E4M3");
  refuse({{"a.b", DType::kF8E4M3, {5, 9}, w.bytes}}, kBlocks, "is no matrix");
  refuse({{"a.weight", DType::kF8E4M3, {45}, w.bytes}}, kBlocks, "is no matrix");
  refuse({w, s}, R"({"quant_method": "fp8", "fmt": "e5m2"})",
         "quantization_config.fmt is \"e5m2\"");
  refuse({w, s}, R"({"quant_method": "fp8", "activation_scheme": "magic"})",
         "activation_scheme is");
  for (const char* size :
       {"[3]", "[3, 0]", "[3, -4]", "[3, 4, 5]", "128", "[3.5, 4]", "[3, 4294967296]"})
    refuse({w, s}, std::string(R"({"quant_method": "fp8", "weight_block_size": )") + size + "}",
           "weight_block_size is");
  refuse({w, s},
         R"({"quant_method": "fp8", "weight_block_size": [3, 4], "modules_to_not_convert": ["a"]})",
         "a.weight: is F8_E4M3, but quantization_config leaves that module unquantised");
}

TEST_CASE("fp8: compressed-tensors configurations that are not FP8 are refused by key") {
  TempDir dir;
  const std::vector<MadeTensor> tensors = {codes("a.weight", 5, 9),
                                           f32("a.weight_scale", {1}, {1.0f})};
  const auto refuse = [&](const std::string& config, const char* text) {
    LF_CHECK_ERROR(make(dir, tensors, config), ErrorCode::kBadData, text);
  };
  const std::string good = R"({"num_bits": 8, "type": "float", "strategy": "tensor"})";
  CHECK(make(dir, tensors, compressed(good))->tensors().size() == 1);
  refuse(compressed(R"({"num_bits": 4, "type": "float", "strategy": "tensor"})"),
         "num_bits is not 8");
  refuse(compressed(R"({"num_bits": 8, "type": "int", "strategy": "tensor"})"),
         "config_groups.group_0.weights.type is \"int\"");
  refuse(compressed(R"({"num_bits": 8, "type": "float", "strategy": "token"})"),
         "strategy is \"token\"");
  refuse(compressed(R"({"num_bits": 8, "type": "float", "strategy": "block"})"),
         "block_structure is missing");
  refuse(compressed(R"({"num_bits": 8, "type": "float", "strategy": "group"})"),
         "group_size is missing");
  refuse(compressed(R"({"num_bits": 8, "type": "float", "symmetric": false})"),
         "symmetric is false");
  refuse(compressed(R"({"num_bits": 8, "type": "float", "dynamic": true})"), "dynamic is true");
  refuse(compressed(good, R"("kv_cache_scheme": {"num_bits": 8}, )"), "kv_cache_scheme is");
  refuse(compressed(good, R"("sparsity_config": {"format": "sparse-24"}, )"),
         "sparsity_config.format");
  refuse(compressed(good, R"("quantization_status": "calibration", )"), "quantization_status");
  refuse(R"({"quant_method": "compressed-tensors", "format": "pack-quantized"})",
         "format is \"pack-quantized\"");
  refuse(R"({"quant_method": "compressed-tensors", "format": "float-quantized"})",
         "config_groups is missing");
  refuse(R"({"quant_method": "compressed-tensors", "config_groups": {"g": 3}})", "is no object");
  refuse(
      R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["Linear"]}}})",
      "weights is no object");
  refuse(
      R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["re:(("], "weights": )" +
          good + "}}}",
      "config.json");
  refuse(
      R"({"quant_method": "compressed-tensors", "ignore": ["re:a"], "config_groups": {"g": {"targets": ["Linear"], "weights": )" +
          good + "}}}",
      "a.weight: is F8_E4M3, but quantization_config leaves that module unquantised");
  std::vector<MadeTensor> zero = tensors;
  zero.push_back({"a.weight_zero_point", DType::kI8, {1}, {0}});
  CHECK(make(dir, zero, compressed(good))
            ->quantized(make(dir, zero, compressed(good))->at("a.weight"))
            ->companions.size() == 1);
  zero.back().bytes[0] = 3;
  LF_CHECK_ERROR(make(dir, zero, compressed(good)), ErrorCode::kBadData,
                 "a.weight_zero_point: is not zero");
}
