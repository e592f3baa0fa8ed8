#include "convert/export.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "convert_support.h"
#include "formats/peft.h"
#include "ir/writer.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

using namespace loongforge;
using convert::export_model;
using convert::import_model;
using support::Json;
using tensor::DType;

namespace {

std::filesystem::path checkpoint(const std::string& family) {
  return test::model_dir(family) / "checkpoint";
}
std::filesystem::path adapter(const std::string& family) {
  return test::model_dir(family) / "adapter";
}

void refuse(const convert::ExportOptions& options, const test::TempDir& dir, ErrorCode code,
            const char* text) {
  const size_t before = dir.entries();
  LF_CHECK_ERROR(export_model(options), code, text);
  CHECK(dir.entries() == before);
}

}  // namespace

TEST_CASE("bf16 there and back is the same, byte for byte") {
  for (const std::string& family : test::golden_models()) {
    CAPTURE(family);
    const test::TempDir dir;
    import_model(test::import_options(checkpoint(family), dir / "ir"));
    const convert::ExportReport report = export_model(test::export_options(dir / "ir", dir / "hf"));
    const auto want = formats::open_tensor_source(checkpoint(family)),
               got = formats::open_tensor_source(dir / "hf");
    test::check_same_checkpoint(*want, *got);
    CHECK(got->metadata().at("format") == "pt");
    CHECK(test::load_config(dir / "hf") == test::load_config(checkpoint(family)));
    // The same spelling of every key, v4 or v5, in the same order.
    CHECK(test::load_config(dir / "hf").dump() == test::load_config(checkpoint(family)).dump());
    std::vector<std::string> files = {"config.json", "model.safetensors"};
    if (std::filesystem::exists(checkpoint(family) / "generation_config.json")) {
      files.insert(files.begin() + 1, "generation_config.json");
      CHECK(test::read_file(dir / "hf" / "generation_config.json") ==
            test::read_file(checkpoint(family) / "generation_config.json"));
    }
    CHECK(report.files == files);
    CHECK(report.tensors == static_cast<int64_t>(want->tensors().size()));
  }
}

TEST_CASE("a head that the source held twice comes back twice") {
  const test::TempDir dir;
  std::vector<test::MadeTensor> tensors = test::load_tensors(checkpoint("smollm2"));
  for (const test::MadeTensor& tensor : test::load_tensors(checkpoint("smollm2"))) {
    if (tensor.name != "model.embed_tokens.weight") continue;
    tensors.push_back(tensor);
    tensors.back().name = "lm_head.weight";
  }
  test::write_checkpoint(dir / "in", tensors, test::load_config(checkpoint("smollm2")));
  import_model(test::import_options(dir / "in", dir / "ir"));
  export_model(test::export_options(dir / "ir", dir / "hf"));
  test::check_same_checkpoint(*formats::open_tensor_source(dir / "in"),
                              *formats::open_tensor_source(dir / "hf"));
}

TEST_CASE("the other element types") {
  const test::TempDir dir;
  import_model(test::import_options(checkpoint("llama3"), dir / "ir"));
  export_model(test::export_options(dir / "ir", dir / "fp32", "fp32"));
  CHECK(test::load_config(dir / "fp32").get_string("torch_dtype", "") +
            test::load_config(dir / "fp32").get_string("dtype", "") ==
        "float32");
  const auto source = formats::open_tensor_source(dir / "fp32");
  for (const formats::StoredTensor& tensor : source->tensors()) {
    CHECK(tensor.dtype == DType::kF32);
    CHECK(source->read_f32(tensor) == test::source_values(checkpoint("llama3"), tensor.name));
  }
}

TEST_CASE("fp8: the codes of LoongIR with their multiplier over 32") {
  struct Case {
    const char *family, *quantize;
    int64_t block, fp8;
    size_t kept;
  };
  // llama3's smallest common block is 32 (160 columns). llama2's 172 rows or columns have none.
  const Case cases[] = {
      {"llama3", "fp8", 32, 15, 7}, {"llama3", "bf16", 32, 15, 7}, {"llama2", "fp8", 64, 8, 7}};
  for (const Case& each : cases) {
    CAPTURE(each.family);
    CAPTURE(each.quantize);
    const test::TempDir dir;
    import_model(test::import_options(checkpoint(each.family), dir / "fp8", "fp8"));
    import_model(test::import_options(checkpoint(each.family), dir / "ir", each.quantize));
    const convert::ExportReport report =
        export_model(test::export_options(dir / "ir", dir / "hf", "fp8"));
    const ir::Reader reader(dir / "fp8");
    const auto source = formats::open_tensor_source(dir / "hf");
    int64_t fp8 = 0;
    for (const formats::StoredTensor& tensor : source->tensors()) {
      CAPTURE(tensor.name);
      if (tensor.name.ends_with("_scale_inv")) continue;
      if (tensor.dtype != DType::kF8E4M3) {
        CHECK(tensor.dtype == DType::kBF16);
        continue;
      }
      ++fp8;
      const std::vector<uint8_t> codes = test::stored_bytes(*source, tensor.name);
      const formats::StoredTensor& grid = source->at(tensor.name + "_scale_inv");
      const std::vector<float> scales = source->read_f32(grid);
      const std::vector<double> want = test::decode_fp8(reader, tensor.name);
      const int64_t cols = tensor.cols(), blocks = cols / each.block;
      REQUIRE(tensor.rows() % each.block == 0);
      REQUIRE(cols % each.block == 0);
      REQUIRE(grid.shape == std::vector<int64_t>{tensor.rows() / each.block, blocks});
      for (size_t i = 0; i < codes.size(); ++i) {
        const int64_t r = static_cast<int64_t>(i) / cols, c = static_cast<int64_t>(i) % cols;
        // OCP E4M3: bias 7, the same fields.
        const double scale = scales[static_cast<size_t>(r / each.block * blocks + c / each.block)];
        REQUIRE(test::e4m3la(codes[i]) * 32.0 * scale == want[i]);
      }
    }
    CHECK(fp8 == each.fp8);
    const Json config = test::load_config(dir / "hf");
    const Json& quantization = config.at("quantization_config");
    CHECK(quantization.get_string("quant_method", "") == "fp8");
    CHECK(quantization.get_string("fmt", "") == "e4m3");
    CHECK(quantization.get_string("activation_scheme", "") == "dynamic");
    const std::string block = std::to_string(each.block);
    CHECK(quantization.at("weight_block_size").dump() == "[" + block + "," + block + "]");
    const std::string kept = quantization.at("modules_to_not_convert").dump();
    CHECK(kept.find("\"lm_head\"") != std::string::npos);
    CHECK(kept.find("q_proj") == std::string::npos);
    CHECK(report.kept.size() == each.kept);
  }
}

TEST_CASE("fp8: a model of whole 128 blocks has those") {
  const test::TempDir dir;
  Json config = test::load_config(checkpoint("llama2"));
  config.set("hidden_size", 128);
  config.set("intermediate_size", 256);
  config.set("num_hidden_layers", 1);
  config.set("vocab_size", 4);
  std::vector<test::MadeTensor> tensors;
  const auto add = [&tensors](const std::string& name, std::vector<int64_t> shape) {
    int64_t elements = 1;
    for (int64_t extent : shape) elements *= extent;
    std::vector<uint8_t> bytes;
    for (int64_t i = 0; i < elements; ++i) {
      bytes.push_back(static_cast<uint8_t>(i * 37));
      bytes.push_back(static_cast<uint8_t>(0x3C + i % 4));
    }
    tensors.push_back({name, DType::kBF16, std::move(shape), std::move(bytes)});
  };
  add("model.embed_tokens.weight", {4, 128});
  add("lm_head.weight", {4, 128});
  add("model.norm.weight", {128});
  for (const char* name : {"input_layernorm", "post_attention_layernorm"})
    add(std::string("model.layers.0.") + name + ".weight", {128});
  for (const char* name : {"q", "k", "v", "o"})
    add(std::string("model.layers.0.self_attn.") + name + "_proj.weight", {128, 128});
  for (const char* name : {"gate", "up"})
    add(std::string("model.layers.0.mlp.") + name + "_proj.weight", {256, 128});
  add("model.layers.0.mlp.down_proj.weight", {128, 256});
  test::write_checkpoint(dir / "in", tensors, config);
  import_model(test::import_options(dir / "in", dir / "ir", "fp8"));
  export_model(test::export_options(dir / "ir", dir / "hf", "fp8"));
  CHECK(test::load_config(dir / "hf").at("quantization_config").at("weight_block_size").dump() ==
        "[128,128]");
  const auto source = formats::open_tensor_source(dir / "hf");
  CHECK(source->at("model.layers.0.mlp.up_proj.weight_scale_inv").shape ==
        std::vector<int64_t>{2, 1});
  const ir::Reader reader(dir / "ir");
  const std::vector<float> ours = reader.read_f32("model.layers.0.mlp.down_proj.weight.scale");
  const std::vector<float> theirs =
      source->read_f32(source->at("model.layers.0.mlp.down_proj.weight_scale_inv"));
  REQUIRE(ours.size() == theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) CHECK(theirs[i] * 32.0f == ours[i]);
}

TEST_CASE("fp8 to bf16 is exact") {
  const test::TempDir dir;
  convert::ImportOptions options = test::import_options(checkpoint("llama2"), dir / "ir", "fp8");
  options.quantize_head = true;
  import_model(options);
  export_model(test::export_options(dir / "ir", dir / "hf", "bf16"));
  const ir::Reader reader(dir / "ir");
  for (const char* name : {"model.layers.0.mlp.down_proj.weight", "lm_head.weight"}) {
    const std::vector<double> want = test::decode_fp8(reader, name);
    const std::vector<float> got = test::source_values(dir / "hf", name);
    REQUIRE(got.size() == want.size());
    for (size_t i = 0; i < want.size(); ++i) REQUIRE(double{got[i]} == want[i]);
  }
}

TEST_CASE("merge: W + scaling B A, rounded once") {
  for (const char* family : {"llama2", "llama3", "smollm2"}) {
    CAPTURE(family);
    const test::TempDir dir;
    import_model(test::import_options(checkpoint(family), dir / "ir"));
    convert::ExportOptions options = test::export_options(dir / "ir", dir / "fp32", "fp32");
    options.adapter = adapter(family);
    options.merge = true;
    const convert::ExportReport report = export_model(options);
    options.output_path = dir / "bf16";
    options.dtype = "bf16";
    export_model(options);
    const formats::PeftAdapter lora(adapter(family));
    CHECK(report.merged == static_cast<int64_t>(lora.modules().size()));
    CHECK(report.merged > 0);
    std::vector<std::string> adapted;
    for (const formats::PeftModule& module : lora.modules()) {
      const std::string name = module.module + ".weight";
      CAPTURE(name);
      adapted.push_back(name);
      const std::vector<float> w = test::source_values(checkpoint(family), name);
      const std::vector<float> a = lora.tensors().read_f32(*module.a),
                               b = lora.tensors().read_f32(*module.b);
      const std::vector<float> got = test::source_values(dir / "fp32", name),
                               rounded = test::source_values(dir / "bf16", name);
      bool changed = false;
      for (int64_t r = 0; r < module.out; ++r) {
        for (int64_t c = 0; c < module.in; ++c) {
          double product = 0;
          for (int64_t k = 0; k < module.r; ++k) {
            product += double{b[static_cast<size_t>(r * module.r + k)]} *
                       double{a[static_cast<size_t>(k * module.in + c)]};
          }
          const size_t i = static_cast<size_t>(r * module.in + c);
          const double want = double{w[i]} + module.scaling * product;
          REQUIRE(std::abs(double{got[i]} - want) <= 1e-6 * (1.0 + std::abs(want)));
          REQUIRE(rounded[i] == test::nearest_bf16(got[i]));
          changed = changed || got[i] != w[i];
        }
      }
      CHECK(changed);
    }
    // All others are as they were.
    const auto written = formats::open_tensor_source(dir / "bf16");
    for (const formats::StoredTensor& tensor : written->tensors()) {
      if (std::find(adapted.begin(), adapted.end(), tensor.name) != adapted.end()) continue;
      CHECK(test::source_values(dir / "bf16", tensor.name) ==
            test::source_values(checkpoint(family), tensor.name));
    }
  }
}

TEST_CASE("peft: the adapter alone") {
  const test::TempDir dir;
  import_model(test::import_options(checkpoint("llama3"), dir / "ir", "fp8"));
  convert::ExportOptions options = test::export_options(dir / "ir", dir / "out");
  options.format = "peft";
  options.adapter = adapter("llama3");
  export_model(options);
  const formats::PeftAdapter got(dir / "out"), want(adapter("llama3"));
  test::check_same_checkpoint(want.tensors(), got.tensors());
  CHECK(got.tensors().metadata().at("format") == "pt");
  CHECK(got.config().r == want.config().r);
  CHECK(got.config().lora_alpha == want.config().lora_alpha);
  CHECK(got.config().target_modules == want.config().target_modules);
  // The input path may be the adapter's own folder, or the folder around it.
  std::filesystem::create_directories(dir / "step-10");
  std::filesystem::copy(adapter("llama3"), dir / "step-10" / "adapter");
  options.adapter.clear();
  options.input_path = dir / "step-10";
  options.output_path = dir / "again";
  options.dtype = "bf16";
  export_model(options);
  const formats::PeftAdapter narrow(dir / "again");
  for (const formats::StoredTensor& tensor : narrow.tensors().tensors())
    CHECK(tensor.dtype == DType::kBF16);
  options.output_path = dir / "third";
  options.input_path = dir / "ir";
  options.adapter = adapter("smollm2");
  refuse(options, dir, ErrorCode::kBadData, "does not fit the model");
}

TEST_CASE("a checkpoint of fp32 masters is rounded once") {
  const test::TempDir dir;
  import_model(test::import_options(checkpoint("llama2"), dir / "base", "fp32"));
  // What full fine-tuning leaves: the same model with other fp32 weights, in a folder of the
  // checkpoint.
  const ir::Reader base(dir / "base");
  {
    ir::Writer writer(dir / "checkpoint-7" / "model", false, 4096);
    for (const ir::TensorEntry& entry : base.model().tensors) {
      if (entry.crc.empty()) continue;
      std::vector<float> values = base.read_f32(entry.name);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] += std::sin(static_cast<float>(i)) * 1e-3f;
      ir::TensorEntry next;
      next.name = entry.name;
      next.dtype = DType::kF32;
      next.shape = entry.shape;
      writer.begin_tensor(next);
      writer.write_rows(values.data(), next.rows());
      writer.finish_tensor();
    }
    writer.finish(base.model());
  }
  export_model(test::export_options(dir / "checkpoint-7", dir / "hf"));
  const ir::Reader tuned(dir / "checkpoint-7" / "model");
  const auto written = formats::open_tensor_source(dir / "hf");
  for (const formats::StoredTensor& tensor : written->tensors()) {
    std::vector<float> want = tuned.read_f32(tensor.name);
    for (float& value : want) value = test::nearest_bf16(value);
    CHECK(test::source_values(dir / "hf", tensor.name) == want);
  }
}

TEST_CASE("shards") {
  const test::TempDir dir;
  import_model(test::import_options(checkpoint("smollm2"), dir / "ir"));
  convert::ExportOptions options = test::export_options(dir / "ir", dir / "hf");
  options.max_shard_bytes = 100'000;
  const convert::ExportReport report = export_model(options);
  CHECK(report.weight_files > 1);
  CHECK(std::filesystem::exists(dir / "hf" / "model.safetensors.index.json"));
  test::check_same_checkpoint(*formats::open_tensor_source(checkpoint("smollm2")),
                              *formats::open_tensor_source(dir / "hf"));
  // And they are read again.
  import_model(test::import_options(dir / "hf", dir / "ir2"));
  CHECK(test::read_file(dir / "ir" / "weights-00001-of-00001.lir") ==
        test::read_file(dir / "ir2" / "weights-00001-of-00001.lir"));
}

TEST_CASE("the tokenizer and its chat template come along") {
  const test::TempDir dir;
  test::write_checkpoint(dir / "in", test::load_tensors(checkpoint("llama2")),
                         test::load_config(checkpoint("llama2")));
  test::write_tokenizer(dir / "in", nullptr);
  test::write_file(dir / "in" / "chat_template.jinja", "{{ messages[0].content }}");
  import_model(test::import_options(dir / "in", dir / "ir"));
  const convert::ExportReport report = export_model(test::export_options(dir / "ir", dir / "hf"));
  CHECK(report.warnings.empty());
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}) {
    CHECK(test::read_file(dir / "hf" / name) == test::read_file(dir / "in" / name));
  }
}

TEST_CASE("a dry run of an export writes nothing") {
  const test::TempDir dir;
  import_model(test::import_options(checkpoint("llama2"), dir / "ir"));
  convert::ExportOptions options = test::export_options(dir / "ir", dir / "hf");
  options.dry_run = true;
  const convert::ExportReport dry = export_model(options);
  CHECK(dir.entries() == 1);
  options.dry_run = false;
  const convert::ExportReport wet = export_model(options);
  CHECK(dry.bytes == wet.bytes);
  CHECK(wet.bytes == 280192);
}

TEST_CASE("wrong exports end in one line and nothing is written") {
  const test::TempDir dir;
  import_model(test::import_options(checkpoint("smollm2"), dir / "ir"));
  const auto options = [&dir] { return test::export_options(dir / "ir", dir / "out"); };
  convert::ExportOptions o = options();
  o.input_path = dir / "absent";
  refuse(o, dir, ErrorCode::kNoInput, "absent");
  o.input_path = checkpoint("smollm2");
  refuse(o, dir, ErrorCode::kNoInput, "holds no LoongIR model");
  o = options();
  o.format = "onnx";
  refuse(o, dir, ErrorCode::kUsage, "onnx");
  o = options();
  o.dtype = "int4";
  refuse(o, dir, ErrorCode::kUsage, "int4");
  o = options();
  o.merge = true;
  refuse(o, dir, ErrorCode::kUsage, "--merge needs --adapter");
  o = options();
  o.adapter = adapter("smollm2");
  refuse(o, dir, ErrorCode::kUsage, "--adapter needs --merge");
  o.merge = true;
  o.adapter = adapter("llama3");
  refuse(o, dir, ErrorCode::kBadData, "adapts model.layers.");
  o.adapter = dir / "absent";
  refuse(o, dir, ErrorCode::kNoInput, "absent");
  o = options();
  o.format = "peft";
  o.adapter = adapter("smollm2");
  o.dtype = "fp8";
  refuse(o, dir, ErrorCode::kUsage, "fp8");
  o = options();
  o.output_path = dir / "ir";
  o.overwrite = true;
  refuse(o, dir, ErrorCode::kUsage, "is or contains the input");

  // Damage is found before the folder appears.
  std::string weights = test::read_file(dir / "ir" / "weights-00001-of-00001.lir");
  weights[100'000] ^= 1;
  test::write_file(dir / "ir" / "weights-00001-of-00001.lir", weights);
  refuse(options(), dir, ErrorCode::kBadData, "is damaged");
}

TEST_CASE("a configuration that its tensors contradict is not exported") {
  const test::TempDir dir;
  import_model(test::import_options(checkpoint("llama3"), dir / "ir"));
  const std::filesystem::path file = dir / "ir" / "loongir_model.json";
  std::string text = read_text(file);
  const size_t at = text.find("\"hidden_size\":");
  REQUIRE(at != std::string::npos);
  const size_t digits = text.find_first_of("0123456789", at),
               end = text.find_first_not_of("0123456789", digits);
  text.replace(digits, end - digits, "72");
  write_text_atomic(file, text);
  LF_CHECK_ERROR(export_model(test::export_options(dir / "ir", dir / "hf")), ErrorCode::kBadData,
                 "loongir_model.json");
  CHECK_FALSE(std::filesystem::exists(dir / "hf"));
}
