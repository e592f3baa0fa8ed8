// NF4 through LoongIR: bitsandbytes' codes kept, other sources quantised, everything decoded once.
#include "convert/kept_nf4.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/error.h"
#include "convert_support.h"
#include "formats/safetensors.h"
#include "kernels/nf4_format.h"
#include "kernels/quant.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;
using support::Json;
using tensor::DType;
using test::TempDir;

namespace {

std::filesystem::path bnb(const char* kind) { return test::data_dir() / "formats/nf4" / kind; }

std::unique_ptr<formats::QuantizedSource> open(const std::filesystem::path& folder) {
  auto source = formats::with_quantization(formats::open_hf_checkpoint(folder),
                                           formats::read_hf_config(folder / "config.json"));
  auto* quantized = dynamic_cast<formats::QuantizedSource*>(source.get());
  REQUIRE(quantized != nullptr);
  source.release();
  return std::unique_ptr<formats::QuantizedSource>(quantized);
}

// Rows of an NF4 tensor of the model, dense.
std::vector<uint8_t> codes_of(const ir::Reader& reader, const ir::TensorEntry& entry) {
  std::vector<uint8_t> padded(entry.bytes), out;
  reader.read_rows(entry, 0, entry.rows(), padded);
  for (int64_t r = 0; r < entry.rows(); ++r) {
    const auto row = padded.begin() + r * static_cast<int64_t>(entry.row_stride());
    out.insert(out.end(), row, row + static_cast<int64_t>(entry.row_bytes()));
  }
  return out;
}

// The weights of which the reference has bitsandbytes' values.
void check_decoded(const std::filesystem::path& folder, const char* kind) {
  const formats::SafetensorsFile reference(bnb(kind) / "dequantised.safetensors");
  const auto decoded = formats::open_hf_checkpoint(folder);
  for (const formats::StoredTensor& want : reference.tensors()) {
    const std::string& name = want.name;
    CAPTURE(name);
    const formats::StoredTensor& got = decoded->at(name);
    CHECK(got.dtype == DType::kBF16);
    CHECK(got.shape == want.shape);
    CHECK(test::stored_bytes(*decoded, name) == test::stored_bytes(reference, name));
  }
  CHECK_FALSE(test::load_config(folder).contains("quantization_config"));
}

}  // namespace

TEST_CASE("nf4: bitsandbytes' codes are kept, rows that end inside a block become bf16") {
  for (const char* kind : {"single", "double"}) {
    CAPTURE(kind);
    const TempDir dir;
    const convert::ImportReport report =
        convert::import_model(test::import_options(bnb(kind), dir / "ir", "nf4"));
    CHECK(report.linears == 15);
    CHECK(report.linears_nf4 == 8);  // q, o, gate and up of two blocks; k and v are small
    CHECK(report.linears_as_stored == 8);
    CHECK(report.kept.size() == 7);
    size_t said = 0;
    for (const convert::KeptTensor& each : report.kept)
      said += each.reason.find("blocks do not end with its rows") != std::string::npos;
    CHECK(said == 2);
    const ir::Reader reader(dir / "ir");
    CHECK(reader.model().quantize == "nf4");
    const auto source = open(bnb(kind));
    size_t nf4 = 0;
    for (const ir::TensorEntry& entry : reader.model().tensors) {
      if (entry.dtype != DType::kNf4) continue;
      ++nf4;
      const formats::QuantizedTensor* stored = source->quantized(source->at(entry.name));
      REQUIRE(stored != nullptr);
      CHECK(codes_of(reader, entry) == test::stored_bytes(source->stored(), entry.name));
      const int64_t blocks = entry.rows() * entry.cols() / 64;
      CHECK(reader.read_f32(entry.scale) ==
            formats::read_nf4_absmax(source->stored(), *stored, 0, blocks));
    }
    CHECK(nf4 == 8);
    CHECK(reader.model().find_tensor("model.layers.0.mlp.down_proj.weight")->dtype == DType::kBF16);
    convert::export_model(test::export_options(dir / "ir", dir / "hf"));
    check_decoded(dir / "hf", kind);
  }
}

TEST_CASE("nf4: a bitsandbytes checkpoint decoded gives bitsandbytes' values") {
  for (const char* kind : {"single", "double"}) {
    CAPTURE(kind);
    const TempDir dir;
    convert::import_model(test::import_options(bnb(kind), dir / "ir", "bf16"));
    convert::export_model(test::export_options(dir / "ir", dir / "hf"));
    check_decoded(dir / "hf", kind);
  }
}

TEST_CASE("nf4: other checkpoints are quantised row by row") {
  const TempDir dir;
  const auto from = test::model_dir("llama2") / "checkpoint";
  const convert::ImportReport report =
      convert::import_model(test::import_options(from, dir / "ir", "nf4"));
  CHECK(report.linears_nf4 == 14);
  CHECK(report.linears_as_stored == 0);
  convert::export_model(test::export_options(dir / "ir", dir / "hf", "fp32"));
  const ir::Reader reader(dir / "ir");
  const auto source = formats::open_hf_checkpoint(from),
             out = formats::open_hf_checkpoint(dir / "hf");
  // Rows of 172: two blocks of 64 and one of 44. As bitsandbytes does it: x / absmax, nearest
  // value.
  const std::string name = "model.layers.1.mlp.down_proj.weight";
  const std::vector<float> x = source->read_f32(source->at(name)), y = out->read_f32(out->at(name));
  const ir::TensorEntry& entry = *reader.model().find_tensor(name);
  REQUIRE(entry.dtype == DType::kNf4);
  const int64_t cols = entry.cols();
  REQUIRE(cols == 172);
  const std::vector<float> absmax = reader.read_f32(entry.scale);
  const std::vector<uint8_t> codes = codes_of(reader, entry);
  size_t wrong = 0;
  for (int64_t r = 0; r < entry.rows(); ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      float largest = 0;
      for (int64_t i = c / 64 * 64; i < std::min(cols, c / 64 * 64 + 64); ++i)
        largest = std::max(largest, std::fabs(x[static_cast<size_t>(r * cols + i)]));
      const float scale = absmax[static_cast<size_t>(r * 3 + c / 64)];
      const int code = kernels::nf4_code_at(codes.data() + r * 86, c);
      const float value = kernels::kNf4Values[code] * scale;
      double nearest = 10;
      for (const float each : kernels::kNf4Values)
        nearest = std::min(nearest, std::fabs(x[static_cast<size_t>(r * cols + c)] -
                                              static_cast<double>(each) * scale));
      wrong += scale != largest || y[static_cast<size_t>(r * cols + c)] != value ||
               std::fabs(x[static_cast<size_t>(r * cols + c)] - static_cast<double>(value)) >
                   nearest + 1e-6 * scale;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("nf4: longer blocks of the source are several of LoongIR's") {
  const TempDir dir;
  const std::string state = R"({"quant_type": "nf4", "blocksize": 128, "shape": [2, 256]})";
  const auto table = test::stored_bytes(*formats::open_hf_checkpoint(bnb("single")),
                                        "model.layers.0.self_attn.q_proj.weight.quant_map");
  std::vector<float> absmax = {1, 2, 3, 4};
  const auto write = [&](const char* name) {
    std::vector<uint8_t> bytes(16);
    std::memcpy(bytes.data(), absmax.data(), 16);
    test::write_checkpoint(dir / name,
                           {{"x.weight", DType::kU8, {256, 1}, std::vector<uint8_t>(256, 0x5A)},
                            {"x.weight.absmax", DType::kF32, {4}, bytes},
                            {"x.weight.quant_map", DType::kF32, {16}, table},
                            {"x.weight.quant_state.bitsandbytes__nf4",
                             DType::kU8,
                             {static_cast<int64_t>(state.size())},
                             std::vector<uint8_t>(state.begin(), state.end())}},
                           test::load_config(bnb("single")));
    return open(dir / name);
  };
  const auto source = write("a");
  const formats::QuantizedTensor& x = *source->quantized(source->at("x.weight"));
  CHECK(convert::nf4_can_be_kept(x));
  CHECK(convert::nf4_absmax(source->stored(), x) == std::vector<float>{1, 1, 2, 2, 3, 3, 4, 4});
  formats::QuantizedTensor other = x;
  other.nf4_block = 96;
  CHECK_FALSE(convert::nf4_can_be_kept(other));
  other.nf4_block = 512;
  CHECK_FALSE(convert::nf4_can_be_kept(other));
  absmax[2] = HUGE_VALF;
  const auto infinite = write("b");
  LF_CHECK_ERROR(
      convert::nf4_absmax(infinite->stored(), *infinite->quantized(infinite->at("x.weight"))),
      ErrorCode::kBadData, "x.weight.absmax: holds a value that is not finite");
}

TEST_CASE("nf4: what cannot be stored so is refused") {
  const TempDir dir;
  const auto from = test::model_dir("llama2") / "checkpoint";
  std::vector<test::MadeTensor> tensors = test::load_tensors(from);
  for (test::MadeTensor& each : tensors) {
    if (each.name != "model.layers.1.self_attn.v_proj.weight") continue;
    each.bytes[101] = 0x7F;
    each.bytes[100] = 0xC0;
  }
  test::write_checkpoint(dir / "in", tensors, test::load_config(from));
  LF_CHECK_ERROR(convert::import_model(test::import_options(dir / "in", dir / "ir", "nf4")),
                 ErrorCode::kBadData, "v_proj.weight: holds values that are not finite");
  CHECK_FALSE(std::filesystem::exists(dir / "ir"));
  convert::ImportOptions options = test::import_options(from, dir / "ir", "nf4");
  options.quantize_head = true;
  LF_CHECK_ERROR(convert::import_model(options), ErrorCode::kUsage, "--quantize_head needs");
}
