// bitsandbytes checkpoints: its own dequantised values, and what is refused.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "formats/quantized_source.h"
#include "formats/safetensors.h"
#include "kernels/quant.h"
#include "support/checkpoint_files.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "tensor/convert.h"

using namespace loongforge;
using namespace loongforge::formats;
using support::Json;
using tensor::DType;
using test::MadeTensor;
using test::TempDir;

namespace {

std::filesystem::path bnb(const char* kind) { return test::data_dir() / "formats/nf4" / kind; }

std::unique_ptr<QuantizedSource> open(const std::filesystem::path& folder) {
  auto source =
      with_quantization(open_hf_checkpoint(folder), read_hf_config(folder / "config.json"));
  REQUIRE(dynamic_cast<QuantizedSource*>(source.get()) != nullptr);
  return std::unique_ptr<QuantizedSource>(static_cast<QuantizedSource*>(source.release()));
}

constexpr const char* kQ = "model.layers.0.self_attn.q_proj.weight";

MadeTensor& find(std::vector<MadeTensor>& tensors, const std::string& name) {
  for (MadeTensor& each : tensors)
    if (each.name == name) return each;
  FAIL("no tensor " << name);
  throw 0;
}

// The checkpoint with something changed must be refused, saying `text`.
void refuse(const char* kind, const char* text,
            const std::function<void(std::vector<MadeTensor>&, Json&)>& edit) {
  const TempDir dir;
  std::vector<MadeTensor> tensors = test::load_tensors(bnb(kind) / "model.safetensors");
  Json config = test::load_config(bnb(kind));
  edit(tensors, config);
  test::write_checkpoint(dir / "m", tensors, config);
  LF_CHECK_ERROR(open(dir / "m"), ErrorCode::kBadData, text);
}
void refuse_state(const char* kind, const char* text, const char* state) {
  refuse(kind, text, [&](std::vector<MadeTensor>& tensors, Json&) {
    MadeTensor& t = find(tensors, std::string(kQ) + ".quant_state.bitsandbytes__nf4");
    t.bytes.assign(state, state + std::strlen(state));
    t.shape = {static_cast<int64_t>(t.bytes.size())};
  });
}
void drop(std::vector<MadeTensor>& tensors, const std::string& name) {
  std::erase_if(tensors, [&](const MadeTensor& each) { return each.name == name; });
}

}  // namespace

TEST_CASE("bitsandbytes: values are its own, companions are hidden") {
  for (const char* kind : {"single", "double"}) {
    CAPTURE(kind);
    const auto source = open(bnb(kind));
    size_t quantized = 0;
    for (const StoredTensor& tensor : source->tensors()) {
      const std::string& name = tensor.name;
      CAPTURE(name);
      CHECK(name.ends_with(".weight"));
      CHECK(source->readable_f32(tensor));
      const bool linear = name.find("_proj") != std::string::npos;
      CHECK((source->quantized(tensor) != nullptr) == linear);
      quantized += linear;
    }
    CHECK(quantized == 14);
    CHECK(source->tensors().size() == 21);
    CHECK(source->at("model.layers.0.mlp.down_proj.weight").shape == std::vector<int64_t>{64, 160});
    const SafetensorsFile reference(bnb(kind) / "dequantised.safetensors");
    CHECK(reference.tensors().size() == 4);
    for (const StoredTensor& want : reference.tensors()) {
      const StoredTensor& tensor = source->at(want.name);
      REQUIRE(tensor.shape == want.shape);
      const std::vector<float> values = source->read_f32(tensor);
      std::vector<uint8_t> rounded(values.size() * 2), expected(want.bytes);
      tensor::from_f32(DType::kBF16, values.data(), values.size(), rounded.data());
      reference.read_range(want, 0, expected);
      CHECK(rounded == expected);
      // Rows apart, which begin inside bytes' blocks.
      for (int64_t r0 = 0; r0 < tensor.rows(); r0 += 5) {
        const int64_t r1 = std::min(tensor.rows(), r0 + 5);
        std::vector<float> rows(static_cast<size_t>((r1 - r0) * tensor.cols()));
        source->read_rows_f32(tensor, r0, r1, rows);
        CHECK(std::equal(rows.begin(), rows.end(), values.begin() + r0 * tensor.cols()));
      }
    }
  }
}

TEST_CASE("bitsandbytes: absmax and codes give what the kernels decode") {
  for (const char* kind : {"single", "double"}) {
    const auto source = open(bnb(kind));
    const QuantizedTensor* q = source->quantized(source->at(kQ));
    REQUIRE(q != nullptr);
    CHECK(q->scheme == QuantScheme::kNf4);
    CHECK(q->nf4_block == 64);
    const std::vector<float> absmax = read_nf4_absmax(source->stored(), *q, 0, 64);
    CHECK(read_nf4_absmax(source->stored(), *q, 5, 9) ==
          std::vector<float>(absmax.begin() + 5, absmax.begin() + 9));
    std::vector<uint8_t> codes(64 * 32);
    source->stored().read_range(*q->codes, 0, codes);
    std::vector<float> decoded(64 * 64);
    for (size_t r = 0; r < 64; ++r)
      kernels::nf4_decode(codes.data() + r * 32, &absmax[r], 64, decoded.data() + r * 64);
    CHECK(decoded == source->read_f32(source->at(kQ)));
  }
}

TEST_CASE("bitsandbytes: double quantised absmax as the reference set has them") {
  // n4097 of the golden file, laid out as a checkpoint's weight [1, 4097].
  const SafetensorsFile golden(test::data_dir() / "kernels/nf4.safetensors");
  const auto bytes = [&](const char* name) {
    return test::stored_bytes(golden, std::string("n4097.") + name);
  };
  const float offset = golden.read_f32(golden.at("n4097.double.offset"))[0];
  char state[200];
  const int length = std::snprintf(state, sizeof state,
                                   R"({"quant_type": "nf4", "blocksize": 64, "shape": [1, 4097], )"
                                   R"("nested_blocksize": 256, "nested_offset": %.17g})",
                                   static_cast<double>(offset));
  std::vector<uint8_t> table =
      test::stored_bytes(*open_hf_checkpoint(bnb("single")), std::string(kQ) + ".quant_map");
  const TempDir dir;
  test::write_checkpoint(
      dir / "m",
      {{"x.weight", DType::kU8, {2049, 1}, bytes("double.packed")},
       {"x.weight.absmax", DType::kU8, {65}, bytes("double.absmax")},
       {"x.weight.nested_absmax", DType::kF32, {1}, bytes("double.nested_absmax")},
       {"x.weight.nested_quant_map", DType::kF32, {256}, bytes("double.nested_map")},
       {"x.weight.quant_map", DType::kF32, {16}, table},
       {"x.weight.quant_state.bitsandbytes__nf4",
        DType::kU8,
        {length},
        std::vector<uint8_t>(state, state + length)}},
      test::load_config(bnb("double")));
  const auto source = open(dir / "m");
  CHECK(source->read_f32(source->at("x.weight")) ==
        golden.read_f32(golden.at("n4097.double.dequantised")));
}

TEST_CASE("bitsandbytes: configurations that mean another format") {
  const auto with = [](const char* key, const char* value, const char* text) {
    refuse("single", text, [&](std::vector<MadeTensor>&, Json& config) {
      config.find("quantization_config")->set(key, Json::parse(value, "t"));
    });
  };
  with("load_in_8bit", "true", "8-bit");
  with("load_in_4bit", "false", "load_in_4bit is not true");
  with("bnb_4bit_quant_type", "\"fp4\"", "only nf4");
  with("llm_int8_skip_modules", "\"lm_head\"", "not a list");
}

TEST_CASE("bitsandbytes: parts that are absent or do not fit") {
  const std::string q = kQ;
  const auto without = [&](const char* kind, const char* part, const char* text) {
    refuse(kind, text, [&](std::vector<MadeTensor>& tensors, Json&) { drop(tensors, q + part); });
  };
  without("single", ".absmax", "q_proj.weight.absmax is absent");
  without("single", ".quant_map", "q_proj.weight.quant_map is absent");
  without("single", ".quant_state.bitsandbytes__nf4", "bitsandbytes__nf4 is absent");
  without("single", "", "q_proj.weight is absent");
  without("double", ".nested_absmax", "nested_absmax is absent");
  without("double", ".nested_quant_map", "nested_quant_map is absent");
  const auto change = [&](const char* part, const char* text, DType dtype,
                          std::vector<int64_t> shape, size_t bytes) {
    refuse("single", text, [&](std::vector<MadeTensor>& tensors, Json&) {
      MadeTensor& t = find(tensors, q + part);
      t.dtype = dtype;
      t.shape = shape;
      t.bytes.assign(bytes, 0);
    });
  };
  change("", "has 2047 bytes, NF4 of [64, 64] needs 2048", DType::kU8, {2047, 1}, 2047);
  change(".absmax", "has 63 elements", DType::kF32, {63}, 252);
  change(".absmax", "has the type U8, not F32", DType::kU8, {64}, 64);
  change(".quant_map", "not the table of NF4", DType::kF32, {16}, 64);
  change(".quant_map", "has 15 elements", DType::kF32, {15}, 60);
  refuse("single", "8-bit integers", [](std::vector<MadeTensor>& tensors, Json&) {
    tensors.push_back({"a.SCB", DType::kF32, {1}, std::vector<uint8_t>(4)});
  });
  refuse("single", "only NF4 can be read", [](std::vector<MadeTensor>& tensors, Json&) {
    tensors.push_back(
        {"a.weight.quant_state.bitsandbytes__fp4", DType::kU8, {1}, std::vector<uint8_t>(1)});
  });
}

TEST_CASE("bitsandbytes: a quant_state that is damaged") {
  refuse_state("single", "q_proj.weight.quant_state", "{");
  refuse_state("single", "no JSON object", "[1]");
  refuse_state("single", "quant_type", R"({"blocksize": 64, "shape": [64, 64]})");
  refuse_state("single", "blocksize is missing", R"({"quant_type": "nf4", "shape": [64, 64]})");
  refuse_state("single", "blocksize is odd",
               R"({"quant_type": "nf4", "blocksize": 63, "shape": [64, 64]})");
  refuse_state("single", "shape is no list", R"({"quant_type": "nf4", "blocksize": 64})");
  refuse_state("single", "not that of a matrix",
               R"({"quant_type": "nf4", "blocksize": 64, "shape": [4096]})");
  refuse_state("single", "not a list of sizes",
               R"({"quant_type": "nf4", "blocksize": 64, "shape": [64, -64]})");
  refuse_state("single", "not a list of sizes",
               R"({"quant_type": "nf4", "blocksize": 64, "shape": [9223372036854775807, 2]})");
  refuse_state("single", "needs 2305843009213693952",
               R"({"quant_type": "nf4", "blocksize": 64, "shape": [2147483648, 2147483648]})");
  refuse_state("double", "has the type U8, not F32",
               R"({"quant_type": "nf4", "blocksize": 64, "shape": [64, 64]})");
  refuse_state("double", "nested_offset is not a finite",
               R"({"quant_type": "nf4", "blocksize": 64, "shape": [64, 64],
                   "nested_blocksize": 256, "nested_offset": null})");
  refuse_state("double", "nested_dtype",
               R"({"quant_type": "nf4", "blocksize": 64, "shape": [64, 64], "nested_dtype": "bf16",
                   "nested_blocksize": 256, "nested_offset": 1})");
}
