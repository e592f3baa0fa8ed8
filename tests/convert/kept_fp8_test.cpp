// FP8 checkpoints through LoongIR: kept and given back to the byte, or decoded once.
#include "convert/kept_fp8.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "convert_support.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;
using convert::export_model;
using convert::import_model;
using support::Json;
using tensor::DType;
using test::MadeTensor;

namespace {

constexpr const char* kLayouts[] = {"block", "channel", "tensor"};

std::filesystem::path golden(const char* layout) {
  return test::data_dir() / "formats/fp8" / layout;
}

// code x scale in fp32, from the checkpoint.
std::vector<float> values(const std::filesystem::path& folder, const std::string& name) {
  const auto source = formats::with_quantization(formats::open_tensor_source(folder),
                                                 formats::read_hf_config(folder / "config.json"));
  return source->read_f32(source->at(name));
}

MadeTensor& find(std::vector<MadeTensor>& tensors, const std::string& name) {
  for (MadeTensor& each : tensors) {
    if (each.name == name) return each;
  }
  FAIL("no " << name);
  throw 0;
}

}  // namespace

TEST_CASE("kept fp8: HF -> LoongIR -> HF gives the same bytes and configuration") {
  for (const char* layout : kLayouts) {
    CAPTURE(layout);
    const test::TempDir dir;
    const convert::ImportReport in =
        import_model(test::import_options(golden(layout), dir / "ir", "fp8"));
    CHECK(in.linears_fp8 == 21);
    CHECK(in.warnings.size() == 1);  // no tokenizer
    for (const char* dtype : {"", "fp8"}) {
      convert::ExportOptions options = test::export_options(dir / "ir", dir / "hf", dtype);
      options.overwrite = true;
      const convert::ExportReport out = export_model(options);
      CHECK(out.dtype == "fp8");
      test::check_same_checkpoint(*formats::open_tensor_source(golden(layout)),
                                  *formats::open_tensor_source(dir / "hf"));
      CHECK(test::load_config(dir / "hf") == test::load_config(golden(layout)));
    }
  }
}

TEST_CASE("kept fp8: the table says what it is, and its values are the checkpoint's") {
  for (const char* layout : kLayouts) {
    CAPTURE(layout);
    const test::TempDir dir;
    import_model(test::import_options(golden(layout), dir / "ir", "fp8"));
    const ir::Reader reader(dir / "ir");
    CHECK(convert::holds_kept_fp8(reader.model()));
    const std::string name = "model.layers.1.mlp.down_proj.weight";
    const ir::TensorEntry& entry = reader.model().stored_tensor(name);
    CHECK(entry.dtype == DType::kE4M3LA);
    const std::string kind = layout;
    CHECK(entry.block_rows == (kind == "block" ? 32 : kind == "channel" ? 1 : 64));
    CHECK(entry.block_cols == (kind == "block" ? 32 : 160));
    CHECK(entry.companions.size() == (kind == "tensor" ? 1u : 0u));
    CHECK(reader.model().stored_tensor(entry.scale).dtype ==
          (kind == "channel" ? DType::kBF16 : DType::kF32));
    // By loongir(5): E4M3LA code x scale, whose product in fp32 is the checkpoint's.
    std::vector<uint8_t> codes = convert::dense_bytes(reader, entry);
    const std::vector<float> scales = reader.read_f32(entry.scale),
                             want = values(golden(layout), name);
    const int64_t blocks = (160 + entry.block_cols - 1) / entry.block_cols;
    for (size_t i = 0; i < want.size(); ++i) {
      const int64_t r = static_cast<int64_t>(i) / 160, c = static_cast<int64_t>(i) % 160;
      const size_t s = static_cast<size_t>(r / entry.block_rows * blocks + c / entry.block_cols);
      REQUIRE(static_cast<float>(test::e4m3la(codes[i]) * double{scales[s]}) == want[i]);
    }
  }
}

TEST_CASE("kept fp8: decoded once on import or on export, the same") {
  for (const char* layout : kLayouts) {
    CAPTURE(layout);
    const test::TempDir dir;
    import_model(test::import_options(golden(layout), dir / "fp8", "fp8"));
    for (const char* type : {"fp32", "bf16"}) {
      import_model(test::import_options(golden(layout), dir / type, type));
      const ir::Reader reader(dir / type);
      CHECK(!convert::holds_kept_fp8(reader.model()));
      CHECK(!reader.model().config.contains("quantization_config"));
      const std::filesystem::path a = dir / (std::string("a-") + type),
                                  b = dir / (std::string("b-") + type);
      export_model(test::export_options(dir / type, a, type));
      export_model(test::export_options(dir / "fp8", b, type));
      const auto exported = formats::open_tensor_source(a);
      test::check_same_checkpoint(*exported, *formats::open_tensor_source(b));
      CHECK(!test::load_config(b).contains("quantization_config"));
      for (const formats::StoredTensor& tensor : exported->tensors()) {
        const std::string& name = tensor.name;
        CAPTURE(name);
        std::vector<float> want = values(golden(layout), name);
        if (std::string(type) == "bf16") {
          for (float& value : want) value = test::nearest_bf16(value);
        }
        CHECK(exported->read_f32(tensor) == want);
      }
    }
  }
}

TEST_CASE("kept fp8: F16 stays F16, an FP8 head stays FP8") {
  const test::TempDir dir;
  std::vector<MadeTensor> tensors = test::load_tensors(golden("tensor"));
  for (MadeTensor& each : tensors) {
    if (each.dtype == DType::kBF16) each.dtype = DType::kF16;
  }
  MadeTensor& head = find(tensors, "lm_head.weight");
  head.dtype = DType::kF8E4M3;
  head.bytes.resize(head.bytes.size() / 2);
  for (uint8_t& code : head.bytes) code &= 0x77;
  tensors.push_back({"lm_head.weight_scale", DType::kF16, {1}, {0x01, 0x00}});  // subnormal
  Json config = test::load_config(golden("tensor"));
  config.find("quantization_config")->erase("ignore");
  test::write_checkpoint(dir / "hf", tensors, config);
  import_model(test::import_options(dir / "hf", dir / "ir", "fp8"));
  export_model(test::export_options(dir / "ir", dir / "out"));
  test::check_same_checkpoint(*formats::open_tensor_source(dir / "hf"),
                              *formats::open_tensor_source(dir / "out"));
}

TEST_CASE("kept fp8: NaN codes are counted and kept") {
  const test::TempDir dir;
  std::vector<MadeTensor> tensors = test::load_tensors(golden("block"));
  MadeTensor& weight = find(tensors, "model.layers.0.self_attn.q_proj.weight");
  weight.bytes[5] = 0x7F;
  weight.bytes[77] = 0xFF;
  test::write_checkpoint(dir / "hf", tensors, test::load_config(golden("block")));
  const convert::ImportReport report =
      import_model(test::import_options(dir / "hf", dir / "ir", "fp8"));
  CHECK(report.nan_elements == 2);
  CHECK(report.warnings.back().find("q_proj.weight holds 2 NaN") != std::string::npos);
}

TEST_CASE("kept fp8: what cannot be kept or asked for is refused, nothing is left behind") {
  const test::TempDir dir;
  const auto refuse = [&](const char* layout,
                          const std::function<void(std::vector<MadeTensor>&)>& edit,
                          const char* text, const char* quantize = "fp8") {
    std::vector<MadeTensor> tensors = test::load_tensors(golden(layout));
    edit(tensors);
    test::write_checkpoint(dir / "hf", tensors, test::load_config(golden(layout)));
    LF_CHECK_ERROR(import_model(test::import_options(dir / "hf", dir / "ir", quantize)),
                   ErrorCode::kBadData, text);
    CHECK(dir.entries() == 1);
  };
  const auto set_scale = [](const std::string& name, std::vector<uint8_t> bytes) {
    return [=](std::vector<MadeTensor>& tensors) {
      std::memcpy(find(tensors, name).bytes.data(), bytes.data(), bytes.size());
    };
  };
  const std::string block = "model.layers.2.self_attn.o_proj.weight_scale_inv";
  refuse("block", set_scale(block, {0, 0, 0, 0x7F}),
         "o_proj.weight_scale_inv: holds a scale");  // 2^127
  refuse("block", set_scale(block, {0, 0, 0xC0, 0x7F}), "not finite");
  refuse("channel", set_scale("model.layers.2.self_attn.o_proj.weight_scale", {0x80, 0x7F}),
         "--quantize bf16 decodes");
  refuse(
      "block",
      [&](std::vector<MadeTensor>& tensors) {
        std::erase_if(tensors, [&](const MadeTensor& each) { return each.name == block; });
      },
      "o_proj.weight: is F8_E4M3 and has no weight_scale_inv", "bf16");
  Json config = test::load_config(golden("block"));
  config.erase("quantization_config");
  test::write_checkpoint(dir / "hf", test::load_tensors(golden("block")), config);
  for (const char* quantize : {"fp8", "bf16"})
    LF_CHECK_ERROR(import_model(test::import_options(dir / "hf", dir / "ir", quantize)),
                   ErrorCode::kBadData, "says so by quantization_config");

  convert::ImportOptions options = test::import_options(golden("block"), dir / "ir", "fp8");
  options.quantize_head = true;
  LF_CHECK_ERROR(import_model(options), ErrorCode::kUsage, "--quantize_head does not go with");
  options.quantize_head = false;
  import_model(options);
  convert::ExportOptions merge = test::export_options(dir / "ir", dir / "out", "fp8");
  merge.merge = true;
  merge.adapter = test::model_dir("llama3") / "adapter";
  LF_CHECK_ERROR(export_model(merge), ErrorCode::kUsage, "--dtype bf16");
}
