// --export gguf: LoongIR as a GGUF file and back, against the checkpoints it came from.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "convert/export.h"
#include "convert_support.h"
#include "data/tokenizer.h"
#include "formats/gguf.h"
#include "formats/hf_config.h"
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

convert::ExportOptions gguf_options(const std::filesystem::path& from,
                                    const std::filesystem::path& to,
                                    const std::string& dtype = "") {
  convert::ExportOptions options = test::export_options(from, to, dtype);
  options.format = "gguf";
  return options;
}

// The LoongIR folder of a checkpoint whose config has these changes.
std::filesystem::path import_with(const test::TempDir& dir, const std::string& family,
                                  const std::function<void(Json*)>& change) {
  Json config = test::load_config(checkpoint(family));
  change(&config);
  test::write_checkpoint(dir / "in", test::load_tensors(checkpoint(family)), config);
  import_model(test::import_options(dir / "in", dir / "ir"));
  return dir / "ir";
}

}  // namespace

TEST_CASE("export_gguf: every family there and back is the same, byte for byte") {
  for (const char* family :
       {"llama2", "llama3", "smollm2", "mistral", "qwen2", "qwen3", "llama_bias"}) {
    CAPTURE(family);
    const test::TempDir dir;
    import_model(test::import_options(checkpoint(family), dir / "ir"));
    const convert::ExportReport report = export_model(gguf_options(dir / "ir", dir / "m.gguf"));
    CHECK(report.files == std::vector<std::string>{"m.gguf"});
    const formats::GgufFile file(dir / "m.gguf");
    CHECK(report.tensors == static_cast<int64_t>(file.tensors().size()));
    CHECK(file.require_int("general.file_type") == 32);
    for (const formats::StoredTensor& tensor : file.tensors())
      CHECK(tensor.type == (tensor.shape.size() > 1 ? "BF16" : "F32"));
    convert::ImportOptions back = test::import_options(dir / "m.gguf", dir / "back");
    import_model(back);
    export_model(test::export_options(dir / "back", dir / "hf"));
    test::check_same_checkpoint(*formats::open_tensor_source(checkpoint(family)),
                                *formats::open_tensor_source(dir / "hf"));
    // What decides the mathematics is the same too.
    const auto config = [](const std::filesystem::path& folder) {
      return formats::read_hf_config(folder / "config.json");
    };
    const formats::HfConfig was = config(checkpoint(family)), is = config(dir / "hf");
    CHECK(is.rms_norm_eps == was.rms_norm_eps);
    CHECK(is.head_dim == was.head_dim);
    CHECK(is.num_key_value_heads == was.num_key_value_heads);
    CHECK(is.tie_word_embeddings == was.tie_word_embeddings);
    CHECK(is.rope.theta == was.rope.theta);
    CHECK(is.rope.type == was.rope.type);
    CHECK(is.rope.factor == was.rope.factor);
    CHECK(is.rope.original_max_position_embeddings == was.rope.original_max_position_embeddings);
  }
}

TEST_CASE("export_gguf: rope types that GGUF has keys for come back") {
  for (
      const char* scaling :
      {R"({"rope_type":"linear","factor":3.0})",
       R"({"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32})",
       R"({"rope_type":"yarn","factor":null,"original_max_position_embeddings":64,"beta_fast":16.0,"beta_slow":2.0})"}) {
    CAPTURE(scaling);
    const test::TempDir dir;
    import_with(dir, "llama2",
                [&](Json* config) { config->set("rope_scaling", Json::parse(scaling, "rope")); });
    export_model(gguf_options(dir / "ir", dir / "m.gguf"));
    import_model(test::import_options(dir / "m.gguf", dir / "back"));
    export_model(test::export_options(dir / "back", dir / "hf"));
    const formats::RopeConfig was = formats::read_hf_config(dir / "in/config.json").rope,
                              is = formats::read_hf_config(dir / "hf/config.json").rope;
    CHECK(is.to_json() == was.to_json());
  }
}

TEST_CASE("export_gguf: rows of q and k stand in pairs for llama, as they are for qwen2") {
  const test::TempDir dir;
  for (const auto& [family, paired] : {std::pair{"llama3", true}, std::pair{"qwen2", false}}) {
    const std::string name = family;
    import_model(test::import_options(checkpoint(name), dir / (name + ".ir")));
    export_model(gguf_options(dir / (name + ".ir"), dir / (name + ".gguf"), "fp32"));
    const formats::GgufFile file(dir / (name + ".gguf"));
    const auto source = formats::open_tensor_source(checkpoint(name));
    const formats::HfConfig config = formats::read_hf_config(checkpoint(name) / "config.json");
    const std::vector<float> got = file.read_f32(file.at("blk.1.attn_k.weight"));
    const std::vector<float> was =
        source->read_f32(source->at("model.layers.1.self_attn.k_proj.weight"));
    const int64_t dim = config.head_dim, cols = config.hidden_size;
    for (int64_t r = 0; r < config.num_key_value_heads * dim; ++r) {
      const int64_t in_head = r % dim;
      const int64_t from = paired ? r - in_head + in_head % 2 * dim / 2 + in_head / 2 : r;
      CHECK(std::equal(got.begin() + r * cols, got.begin() + (r + 1) * cols,
                       was.begin() + from * cols));
    }
  }
}

TEST_CASE("export_gguf: the element types") {
  const test::TempDir dir;
  import_model(test::import_options(checkpoint("llama3"), dir / "ir"));
  const auto source = formats::open_tensor_source(checkpoint("llama3"));
  for (const auto& [dtype, type, file_type] :
       {std::tuple{"fp32", "F32", 0}, {"fp16", "F16", 1}, {"q8_0", "Q8_0", 7}}) {
    CAPTURE(dtype);
    const std::filesystem::path path = dir / (std::string(dtype) + ".gguf");
    const convert::ExportReport report = export_model(gguf_options(dir / "ir", path, dtype));
    const formats::GgufFile file(path);
    CHECK(file.require_int("general.file_type") == file_type);
    const formats::StoredTensor& up = file.at("blk.0.ffn_up.weight");
    const bool whole = up.shape[1] % 32 == 0;
    CHECK(up.type == type);
    CHECK(whole);
    const std::vector<float> got = file.read_f32(up);
    const std::vector<float> was =
        source->read_f32(source->at("model.layers.0.mlp.up_proj.weight"));
    REQUIRE(got.size() == was.size());
    for (size_t b = 0; b < got.size(); b += 32) {
      float amax = 0;
      for (size_t i = b; i < b + 32; ++i) amax = std::max(amax, std::fabs(was[i]));
      // Half a step of a code, and of the scale as F16.
      for (size_t i = b; i < b + 32; ++i) {
        const float bound = std::string(dtype) == "fp32"   ? 0.0f
                            : std::string(dtype) == "fp16" ? std::fabs(was[i]) * 0x1p-11f + 0x1p-25f
                                                           : amax / 127 * (0.5f + 127 * 0x1p-11f);
        CHECK(std::fabs(got[i] - was[i]) <= bound);
      }
    }
    CHECK(report.bytes > 0);
  }
}

TEST_CASE("export_gguf: rows that are no whole blocks go out as F16, and it is said") {
  // llama3's sizes are multiples of 32: a model whose inner size is not is made of its rows.
  const test::TempDir dir;
  Json config = test::load_config(checkpoint("llama3"));
  const int64_t inner = config.at("intermediate_size").as_int() - 8;
  std::vector<test::MadeTensor> tensors = test::load_tensors(checkpoint("llama3"));
  for (test::MadeTensor& tensor : tensors) {
    const size_t size = tensor::dtype_bytes(tensor.dtype);
    if (tensor.name.find("gate_proj") != std::string::npos ||
        tensor.name.find("up_proj") != std::string::npos) {
      tensor.shape[0] = inner;
      tensor.bytes.resize(static_cast<size_t>(inner * tensor.shape[1]) * size);
    } else if (tensor.name.find("down_proj") != std::string::npos) {
      tensor.shape[1] = inner;
      tensor.bytes.resize(static_cast<size_t>(inner * tensor.shape[0]) * size);
    }
  }
  config.set("intermediate_size", inner);
  test::write_checkpoint(dir / "in", tensors, config);
  import_model(test::import_options(dir / "in", dir / "ir"));
  const convert::ExportReport report =
      export_model(gguf_options(dir / "ir", dir / "m.gguf", "q8_0"));
  REQUIRE(!report.kept.empty());
  CHECK(report.kept[0].tensor == "blk.0.ffn_down.weight");
  CHECK(report.kept[0].dtype == "F16");
  const formats::GgufFile file(dir / "m.gguf");
  CHECK(file.at("blk.0.ffn_down.weight").type == "F16");
  CHECK(file.at("blk.0.ffn_up.weight").type == "Q8_0");
}

TEST_CASE("export_gguf: a merged adapter is the one that Hugging Face folders get") {
  for (const char* family : {"llama3", "qwen3"}) {
    const test::TempDir dir;
    import_model(test::import_options(checkpoint(family), dir / "ir"));
    convert::ExportOptions options = gguf_options(dir / "ir", dir / "m.gguf", "fp32");
    options.adapter = test::model_dir(family) / "adapter";
    LF_CHECK_ERROR(export_model(options), ErrorCode::kUsage, "needs --merge");
    options.merge = true;
    const convert::ExportReport report = export_model(options);
    CHECK(report.merged > 0);
    import_model(test::import_options(dir / "m.gguf", dir / "back", "fp32"));
    export_model(test::export_options(dir / "back", dir / "got", "fp32"));
    options.format = "hf";
    options.output_path = dir / "want";
    CHECK(export_model(options).merged == report.merged);
    test::check_same_checkpoint(*formats::open_tensor_source(dir / "want"),
                                *formats::open_tensor_source(dir / "got"));
  }
}

TEST_CASE("export_gguf: quantised LoongIR models go out as the values that they stand for") {
  for (const char* quantize : {"fp8", "nf4"}) {
    CAPTURE(quantize);
    const test::TempDir dir;
    import_model(test::import_options(checkpoint("llama3"), dir / "ir", quantize));
    export_model(gguf_options(dir / "ir", dir / "m.gguf", "fp32"));
    import_model(test::import_options(dir / "m.gguf", dir / "back", "fp32"));
    export_model(test::export_options(dir / "back", dir / "got", "fp32"));
    export_model(test::export_options(dir / "ir", dir / "want", "fp32"));
    test::check_same_checkpoint(*formats::open_tensor_source(dir / "want"),
                                *formats::open_tensor_source(dir / "got"));
  }
}

TEST_CASE("export_gguf: what GGUF cannot say is refused or said") {
  const auto refuse = [](const std::string& family, const std::function<void(Json*)>& change,
                         const char* text) {
    const test::TempDir dir;
    const auto ir = import_with(dir, family, change);
    const size_t before = dir.entries();
    LF_CHECK_ERROR(export_model(gguf_options(ir, dir / "m.gguf")), ErrorCode::kBadData, text);
    CHECK(dir.entries() == before);
  };
  const auto rope = [](const char* scaling) {
    return [scaling](Json* config) { config->set("rope_scaling", Json::parse(scaling, "rope")); };
  };
  refuse("llama2", rope(R"({"rope_type":"dynamic","factor":2.0})"),
         "rope type \"dynamic\" has no form");
  refuse("llama2", rope(R"({"rope_type":"yarn","factor":2.0,"attention_factor":1.5})"),
         "attention_factor or mscale");
  refuse("llama2", rope(R"({"rope_type":"yarn","factor":2.0,"truncate":false})"), "truncate false");
  const test::TempDir dir;
  import_model(test::import_options(checkpoint("mistral"), dir / "ir"));
  convert::ExportReport report = export_model(gguf_options(dir / "ir", dir / "m.gguf"));
  REQUIRE(report.warnings.size() == 2);  // the window, the tokenizer
  CHECK(report.warnings[0].find("have no sliding window: context_length is the window's 8") !=
        std::string::npos);
  CHECK(report.warnings[1].find("has no tokenizer") != std::string::npos);
  CHECK(formats::GgufFile(dir / "m.gguf").require_int("llama.context_length") == 8);
}

TEST_CASE("export_gguf: output files") {
  const test::TempDir dir;
  import_model(test::import_options(checkpoint("llama2"), dir / "ir"));
  const auto refuse = [&](convert::ExportOptions options, const char* text) {
    LF_CHECK_ERROR(export_model(options), ErrorCode::kUsage, text);
  };
  refuse(gguf_options(dir / "ir", dir / "folder"), "give a name that ends in .gguf");
  refuse(gguf_options(dir / "ir", dir / "m.gguf", "fp8"),
         "--dtype fp8 is not possible with --export gguf; use bf16, fp16, fp32 or q8_0");
  test::write_file(dir / "m.gguf", "something else");
  refuse(gguf_options(dir / "ir", dir / "m.gguf"), "m.gguf exists");
  convert::ExportOptions options = gguf_options(dir / "ir", dir / "m.gguf");
  options.overwrite = true;
  refuse(options, "is no earlier output");
  test::write_file(dir / "m.gguf", "GGUF and more");
  options.dry_run = true;
  CHECK(export_model(options).files.empty());
  CHECK(test::read_file(dir / "m.gguf") == "GGUF and more");
  options.dry_run = false;
  export_model(options);
  CHECK(formats::GgufFile(dir / "m.gguf").require_string("general.name") == "checkpoint");
  CHECK(dir.entries() == 2);
  // A value that no F16 holds ends the export; nothing is left.
  std::vector<test::MadeTensor> tensors = test::load_tensors(checkpoint("llama2"));
  for (test::MadeTensor& tensor : tensors) {
    if (tensor.name == "model.layers.0.mlp.up_proj.weight") tensor.bytes[1] = 0x7e;  // bf16, huge
  }
  test::write_checkpoint(dir / "big", tensors, test::load_config(checkpoint("llama2")));
  import_model(test::import_options(dir / "big", dir / "big.ir"));
  const size_t before = dir.entries();
  for (const char* dtype : {"fp16", "q8_0"}) {
    LF_CHECK_ERROR(export_model(gguf_options(dir / "big.ir", dir / "b.gguf", dtype)),
                   ErrorCode::kBadData, "model.layers.0.mlp.up_proj.weight: has values");
  }
  CHECK(dir.entries() == before);
}

TEST_CASE("export_gguf: the tokenizer and the chat template go along") {
  const test::TempDir dir;
  const std::filesystem::path source = test::data_dir() / "data/smollm2_tokenizer.gguf";
  // A model with as many rows as that tokenizer has tokens.
  const int64_t rows = 49152;
  Json config = test::load_config(checkpoint("smollm2"));
  std::vector<test::MadeTensor> tensors = test::load_tensors(checkpoint("smollm2"));
  for (test::MadeTensor& tensor : tensors) {
    if (tensor.name != "model.embed_tokens.weight") continue;
    tensor.shape[0] = rows;
    tensor.bytes.resize(static_cast<size_t>(rows * tensor.shape[1]) *
                        tensor::dtype_bytes(tensor.dtype));
  }
  config.set("vocab_size", rows);
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) config.erase(key);
  test::write_checkpoint(dir / "in", tensors, config);
  convert::ImportOptions import = test::import_options(dir / "in", dir / "ir");
  import.tokenizer_path = source;
  import_model(import);
  const convert::ExportReport report = export_model(gguf_options(dir / "ir", dir / "m.gguf"));
  CHECK(report.warnings.empty());
  const formats::GgufFile file(dir / "m.gguf"), original(source);
  CHECK(*file.get_strings("tokenizer.ggml.tokens") ==
        *original.get_strings("tokenizer.ggml.tokens"));
  CHECK(*file.get_string("tokenizer.chat_template") ==
        *original.get_string("tokenizer.chat_template"));
  const char* text = "Some text, 2024.";
  CHECK(data::Tokenizer::load((dir / "m.gguf").string()).encode(text, true) ==
        data::Tokenizer::load(source.string()).encode(text, true));
}
