#include "convert/import.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include "convert_support.h"
#include "formats/hf_config.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "support/torch_zip.h"

using namespace loongforge;
using convert::import_model;
using support::Json;
using tensor::DType;

namespace {

std::filesystem::path checkpoint(const std::string& family) {
  return test::model_dir(family) / "checkpoint";
}

void refuse(convert::ImportOptions options, const test::TempDir& dir, ErrorCode code,
            const char* text) {
  const size_t before = dir.entries();
  LF_CHECK_ERROR(import_model(options), code, text);
  CHECK(dir.entries() == before);
}

}  // namespace

// Their configurations have none of a decoder's keys.
TEST_CASE("a model of a family that is not supported is named, not a key that it cannot have") {
  for (const char* type : {"gpt2", "vit", "resnet", "chatglm", "bert"}) {
    CAPTURE(type);
    const test::TempDir dir;
    std::filesystem::copy(checkpoint("llama2"), dir / "in");
    test::write_file(dir / "in" / "config.json",
                     std::string("{\"model_type\": \"") + type + "\", \"hidden_act\": \"gelu\"}");
    refuse(
        test::import_options(dir / "in", dir / "m", "fp8"), dir, ErrorCode::kBadData,
        (std::string("model_type \"") + type + "\" is not supported; known model types").c_str());
  }
}

TEST_CASE("fp8: the weights of linear layers are within half a code of the source") {
  for (const char* family : {"llama2", "llama3", "smollm2"}) {
    CAPTURE(family);
    const test::TempDir dir;
    const convert::ImportReport report =
        import_model(test::import_options(checkpoint(family), dir / "m", "fp8"));
    const ir::Reader reader(dir / "m");
    CHECK(reader.model().quantize == "fp8");
    int64_t fp8 = 0;
    for (const ir::Node& node : reader.model().graph.nodes) {
      if (node.op != "linear" || node.block < 0) continue;
      const std::string& name = node.params.at("weight");
      CAPTURE(name);
      const ir::TensorEntry& entry = reader.model().stored_tensor(name);
      if (entry.rows() * entry.cols() < 4096) {
        CHECK(entry.dtype == DType::kBF16);
        continue;
      }
      REQUIRE(entry.dtype == DType::kE4M3LA);
      ++fp8;
      std::vector<float> scales;
      const std::vector<double> got = test::decode_fp8(reader, name, &scales);
      const std::vector<float> want = test::source_values(checkpoint(family), name);
      const int64_t cols = entry.cols(), blocks = (cols + 127) / 128;
      std::vector<double> amax(scales.size());
      for (int64_t i = 0; i < static_cast<int64_t>(want.size()); ++i) {
        double& most = amax[static_cast<size_t>(i / cols / 128 * blocks + i % cols / 128)];
        most = std::max(most, std::abs(double{want[static_cast<size_t>(i)]}));
      }
      for (size_t b = 0; b < scales.size(); ++b) {
        const double scale = scales[b];
        CHECK(std::log2(scale) == std::floor(std::log2(scale)));
        CHECK(amax[b] <= 14.0 * scale);
        CHECK(amax[b] > 14.0 * scale / 2);  // the smallest such power of two
      }
      for (int64_t i = 0; i < static_cast<int64_t>(want.size()); ++i) {
        const double scale = scales[static_cast<size_t>(i / cols / 128 * blocks + i % cols / 128)];
        const double value = want[static_cast<size_t>(i)],
                     error = std::abs(got[static_cast<size_t>(i)] - value);
        // Half a unit in the last place of three bits, or of the subnormals.
        REQUIRE(error <= std::max(std::abs(value) / 16.0, scale * 0x1p-15));
      }
    }
    CHECK(report.linears_fp8 == fp8);
    CHECK(fp8 > 0);
    CHECK(static_cast<int64_t>(report.kept.size()) == report.linears - report.linears_fp8);
    for (const convert::KeptTensor& kept : report.kept) CHECK_FALSE(kept.reason.empty());
    CHECK(report.pad_token_id == 0);
    CHECK(reader.model().token_ids.get_int("id_scale", 0) == 2);
    CHECK(reader.model().token_ids.at("eos").dump() == "[4,6]");  // generation_config.json adds 3
  }
}

TEST_CASE("--quantize_head") {
  const test::TempDir dir;
  convert::ImportOptions options = test::import_options(checkpoint("llama2"), dir / "m", "fp8");
  options.quantize_head = true;
  CHECK(import_model(options).kept.empty());
  CHECK(ir::Reader(dir / "m").model().find_tensor("lm_head.weight")->dtype == DType::kE4M3LA);
  options = test::import_options(checkpoint("smollm2"), dir / "t", "fp8");
  options.quantize_head = true;
  const convert::ImportReport report = import_model(options);
  CHECK(ir::Reader(dir / "t").model().stored_tensor("lm_head.weight").dtype == DType::kBF16);
  CHECK(std::any_of(report.kept.begin(), report.kept.end(), [](const auto& kept) {
    return kept.tensor == "model.embed_tokens.weight" &&
           kept.reason.find("--quantize_head") != std::string::npos;
  }));
}

TEST_CASE("--quantize_override: the first pattern that matches a tensor or its layer") {
  const test::TempDir dir;
  convert::ImportOptions options = test::import_options(checkpoint("llama2"), dir / "m", "fp8");
  options.quantize_overrides = quant::parse_amp_overrides(
      "*.0.mlp.down_proj=bf16,*.down_proj.weight=fp32,lm_head=fp8", "quantize_override");
  const convert::ImportReport report = import_model(options);
  const ir::Reader reader(dir / "m");
  const auto dtype = [&](const char* name) { return reader.model().find_tensor(name)->dtype; };
  CHECK(dtype("model.layers.0.mlp.down_proj.weight") == DType::kBF16);
  CHECK(dtype("model.layers.1.mlp.down_proj.weight") == DType::kF32);
  CHECK(dtype("model.layers.1.mlp.up_proj.weight") == DType::kE4M3LA);
  CHECK(dtype("lm_head.weight") == DType::kE4M3LA);
  CHECK(std::any_of(report.kept.begin(), report.kept.end(), [](const auto& kept) {
    return kept.reason == "--quantize_override *.0.mlp.down_proj=bf16";
  }));
  options.output_path = dir / "n";
  options.quantize_overrides = quant::parse_amp_overrides("*.no_such=bf16", "quantize_override");
  LF_CHECK_ERROR(import_model(options), ErrorCode::kUsage,
                 "--quantize_override *.no_such matches no tensor");
  options.quantize_overrides =
      quant::parse_amp_overrides("*_proj=bf16,*.q_proj=fp8", "quantize_override");
  LF_CHECK_ERROR(import_model(options), ErrorCode::kUsage, "*.q_proj is never reached");
  options.quantize_overrides = quant::parse_amp_overrides("*layernorm=fp8", "quantize_override");
  LF_CHECK_ERROR(import_model(options), ErrorCode::kUsage, "matches norms and biases only");
  CHECK_FALSE(std::filesystem::exists(dir / "n"));
}

TEST_CASE("--quantize_override to nf4: linear layers of blocks take it, nothing else does") {
  const test::TempDir dir;
  convert::ImportOptions options = test::import_options(checkpoint("llama2"), dir / "m", "fp8");
  options.quantize_overrides =
      quant::parse_amp_overrides("*.gate_proj=nf4,*_proj=nf4", "quantize_override");
  const convert::ImportReport report = import_model(options);
  CHECK(report.linears_nf4 + 1 == report.linears);  // all but the head
  import_model(test::import_options(checkpoint("llama2"), dir / "whole", "nf4"));
  const ir::Reader mixed(dir / "m"), whole(dir / "whole");
  const ir::TensorEntry* entry = mixed.model().find_tensor("model.layers.0.mlp.up_proj.weight");
  REQUIRE(entry != nullptr);
  CHECK(entry->dtype == DType::kNf4);
  CHECK(entry->crc == whole.model().find_tensor(entry->name)->crc);
  CHECK(mixed.model().find_tensor("model.embed_tokens.weight")->dtype == DType::kBF16);
  for (const char* none : {"lm_head=nf4", "model.embed_tokens=nf4", "*norm=nf4"}) {
    options.output_path = dir / "n";
    options.quantize_overrides = quant::parse_amp_overrides(none, "quantize_override");
    LF_CHECK_ERROR(import_model(options), ErrorCode::kUsage, "nf4 stores no other tensor");
  }
}

TEST_CASE("fp32 keeps every value, bf16 rounds once") {
  // An F16 and an F32 source with values that bf16 does not have.
  for (DType dtype : {DType::kF16, DType::kF32}) {
    const test::TempDir dir;
    std::vector<test::MadeTensor> tensors = test::load_tensors(checkpoint("llama2"));
    for (test::MadeTensor& tensor : tensors) {
      const size_t n = tensor.bytes.size() / 2;
      tensor.dtype = dtype;
      tensor.bytes.resize(n * tensor::dtype_bytes(dtype));
      for (size_t i = 0; i < n; ++i) {
        if (dtype == DType::kF16) {
          const uint16_t bits = static_cast<uint16_t>(0x3000 + (i * 37) % 0x0C00);  // 2^-3 .. 1
          std::memcpy(tensor.bytes.data() + 2 * i, &bits, 2);
        } else {
          const float value = std::sin(static_cast<float>(i));
          std::memcpy(tensor.bytes.data() + 4 * i, &value, 4);
        }
      }
    }
    test::write_checkpoint(dir / "hf", tensors, test::load_config(checkpoint("llama2")));
    import_model(test::import_options(dir / "hf", dir / "f32", "fp32"));
    import_model(test::import_options(dir / "hf", dir / "bf16", "bf16"));
    import_model(test::import_options(dir / "hf", dir / "fp8", "fp8"));
    const ir::Reader exact(dir / "f32"), rounded(dir / "bf16"), coded(dir / "fp8");
    for (const test::MadeTensor& tensor : tensors) {
      CAPTURE(tensor.name);
      const std::vector<float> source = test::source_values(dir / "hf", tensor.name);
      CHECK(exact.read_f32(tensor.name) == source);
      const DType stored = rounded.model().find_tensor(tensor.name)->dtype;
      CHECK(stored ==
            (tensor.shape.size() == 1 && dtype == DType::kF32 ? DType::kF32 : DType::kBF16));
      std::vector<float> want = source;
      if (stored == DType::kBF16) {
        for (float& value : want) value = test::nearest_bf16(value);
      }
      CHECK(rounded.read_f32(tensor.name) == want);
      // FP8 codes come from the source's own values, not from their bf16 images.
      if (coded.model().find_tensor(tensor.name)->dtype != DType::kE4M3LA) continue;
      std::vector<float> scales;
      const std::vector<double> got = test::decode_fp8(coded, tensor.name, &scales);
      for (size_t i = 0; i < source.size(); ++i) {
        double most = 1e9;
        for (int code = 0; code < 127; ++code) {
          for (float scale : scales)
            most =
                std::min(most, std::abs(test::e4m3la(static_cast<uint8_t>(code)) * double{scale} -
                                        std::abs(double{source[i]})));
        }
        if (scales.size() == 1)
          REQUIRE(std::abs(got[i] - double{source[i]}) == doctest::Approx(most).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("a dry run says what a run does, and writes nothing") {
  for (const char* quantize : {"fp8", "bf16", "fp32"}) {
    const test::TempDir dir;
    convert::ImportOptions options =
        test::import_options(checkpoint("llama3"), dir / "m", quantize);
    options.dry_run = true;
    const convert::ImportReport dry = import_model(options);
    CHECK(dir.entries() == 0);
    options.dry_run = false;
    const convert::ImportReport wet = import_model(options);
    CHECK(dry.stored_bytes == wet.stored_bytes);
    CHECK(std::filesystem::file_size(dir / "m" / "weights-00001-of-00001.lir") == dry.stored_bytes);
    CHECK(dry.kept.size() == wet.kept.size());
    CHECK(dry.parameters == 188864);
    CHECK(wet.files == std::vector<std::string>{"generation_config.json", "loongir_model.json",
                                                "weights-00001-of-00001.lir"});
  }
}

TEST_CASE("progress runs up to the end") {
  const test::TempDir dir;
  uint64_t last = 0, total = 0;
  import_model(test::import_options(checkpoint("llama2"), dir / "m", "fp8"),
               [&](const convert::Progress& p) {
                 CHECK(p.done_bytes >= last);
                 CHECK_FALSE(p.tensor.empty());
                 last = p.done_bytes;
                 total = p.total_bytes;
               });
  CHECK(last == total);
  CHECK(total == 280192);
  struct Stop {};
  CHECK_THROWS_AS(import_model(test::import_options(checkpoint("llama2"), dir / "n"),
                               [](const convert::Progress&) { throw Stop(); }),
                  Stop);
  CHECK(dir.entries() == 1);
}

TEST_CASE("the tokenizer goes along and settles the pad") {
  const test::TempDir dir;
  const auto folder = [&dir](const char* name, const char* pad_token, Json config_pad) {
    Json config = test::load_config(checkpoint("llama2"));
    config.set("pad_token_id", std::move(config_pad));
    config.set("eos_token_id", 3);
    test::write_checkpoint(dir / name, test::load_tensors(checkpoint("llama2")), config);
    test::write_tokenizer(dir / name, pad_token);
    return dir / name;
  };
  convert::ImportReport report =
      import_model(test::import_options(folder("a", "<pad>", 4), dir / "a.ir"));
  CHECK(report.pad_token_id == 4);
  CHECK(report.has_tokenizer);
  CHECK(report.warnings.empty());
  CHECK(test::read_file(dir / "a.ir" / "tokenizer.json") ==
        test::read_file(dir / "a" / "tokenizer.json"));
  CHECK(test::read_file(dir / "a.ir" / "tokenizer_config.json") ==
        test::read_file(dir / "a" / "tokenizer_config.json"));
  CHECK(ir::Reader(dir / "a.ir").model().token_ids.dump() ==
        R"({"id_scale":2,"vocab_size":320,"bos":2,"eos":[6],"pad":8})");
  CHECK(
      import_model(test::import_options(folder("b", "<pad>", Json()), dir / "b.ir")).pad_token_id ==
      4);
  CHECK(import_model(test::import_options(folder("c", nullptr, 9), dir / "c.ir")).pad_token_id ==
        9);
  const char* mismatch = "Tokenization error: pad_token_id mismatch between config and tokenizer";
  refuse(test::import_options(folder("d", "<pad>", 9), dir / "d.ir"), dir, ErrorCode::kBadData,
         mismatch);
  refuse(test::import_options(folder("e", nullptr, Json()), dir / "e.ir"), dir, ErrorCode::kBadData,
         mismatch);
  convert::ImportOptions flagged = test::import_options(dir / "e", dir / "e.ir");
  flagged.pad_token_id = 3;
  CHECK(import_model(flagged).pad_token_id == 3);
  // Another tokenizer than the folder's own.
  convert::ImportOptions other = test::import_options(dir / "d", dir / "d.ir");
  other.tokenizer_path = dir / "c";
  CHECK(import_model(other).pad_token_id == 9);
  other.output_path = dir / "f.ir";
  other.tokenizer_path = dir / "nowhere";
  refuse(other, dir, ErrorCode::kNoInput, "nowhere");
}

TEST_CASE("more rows than ids are padding, more ids than rows an error with both numbers") {
  const test::TempDir dir;
  Json config = test::load_config(checkpoint("llama2"));  // 320 rows
  config.set("pad_token_id", 4);
  test::write_checkpoint(dir / "m", test::load_tensors(checkpoint("llama2")), config);
  const auto with_added = [&](int id) {
    test::write_tokenizer(dir / "m", "<pad>");
    test::write_file(dir / "m" / "tokenizer_config.json",
                     R"({"eos_token": "<end>", "pad_token": "<pad>", "added_tokens_decoder": {")" +
                         std::to_string(id) + R"(": {"content": "<far>", "special": true}}})");
  };
  with_added(319);
  CHECK(import_model(test::import_options(dir / "m", dir / "m.ir")).has_tokenizer);
  with_added(320);
  refuse(test::import_options(dir / "m", dir / "n.ir"), dir, ErrorCode::kBadData,
         "the tokenizer has ids up to 320, the model's embedding has 320 rows");
  // SentencePiece's models count alike.
  std::filesystem::remove(dir / "m" / "tokenizer.json");
  std::filesystem::remove(dir / "m" / "tokenizer_config.json");
  std::filesystem::copy_file(test::data_dir() / "data" / "spm_bpe.model",
                             dir / "m" / "tokenizer.model");
  refuse(test::import_options(dir / "m", dir / "n.ir"), dir, ErrorCode::kBadData,
         "the tokenizer has ids up to 2399, the model's embedding has 320 rows");
}

TEST_CASE("a tokenizer that cannot be run yet is copied, a damaged one is an error") {
  const test::TempDir dir;
  test::write_checkpoint(dir / "m", test::load_tensors(checkpoint("llama2")),
                         test::load_config(checkpoint("llama2")));
  const std::string word_piece = R"({"model": {"type": "WordPiece", "vocab": {"a": 0}}})";
  test::write_file(dir / "m" / "tokenizer.json", word_piece);
  const convert::ImportReport report = import_model(test::import_options(dir / "m", dir / "m.ir"));
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("not supported") != std::string::npos);
  CHECK(test::read_file(dir / "m.ir" / "tokenizer.json") == word_piece);
  test::write_file(dir / "m" / "tokenizer.json", "{\"model\": ");
  refuse(test::import_options(dir / "m", dir / "n.ir"), dir, ErrorCode::kBadData, "tokenizer.json");
}

TEST_CASE("not a number and infinity are counted and said") {
  const test::TempDir dir;
  std::vector<test::MadeTensor> tensors = test::load_tensors(checkpoint("llama2"));
  for (test::MadeTensor& tensor : tensors) {
    if (tensor.name != "model.layers.1.mlp.up_proj.weight") continue;
    const uint16_t nan = 0x7FC0, infinity = 0xFF80;
    std::memcpy(tensor.bytes.data(), &nan, 2);
    std::memcpy(tensor.bytes.data() + 2, &infinity, 2);
  }
  test::write_checkpoint(dir / "m", tensors, test::load_config(checkpoint("llama2")));
  const convert::ImportReport report =
      import_model(test::import_options(dir / "m", dir / "m.ir", "fp8"));
  CHECK(report.nan_elements == 1);
  REQUIRE(report.warnings.size() == 3);
  CHECK(report.warnings[1].find("up_proj.weight holds 1 NaN") != std::string::npos);
  CHECK(report.warnings[2].find("1 infinite") != std::string::npos);
}

TEST_CASE("wrong input ends in one line and nothing is written") {
  const test::TempDir dir;
  const auto options = [&dir](const char* from, const char* quantize = "bf16") {
    return test::import_options(dir / from, dir / "out", quantize);
  };
  refuse(options("absent"), dir, ErrorCode::kNoInput, "absent");
  std::filesystem::create_directories(dir / "empty");
  refuse(options("empty"), dir, ErrorCode::kNoInput, "empty");

  const Json config = test::load_config(checkpoint("llama2"));
  const std::vector<test::MadeTensor> tensors = test::load_tensors(checkpoint("llama2"));
  test::write_checkpoint(dir / "m", tensors, config);
  std::filesystem::remove(dir / "m" / "config.json");
  refuse(options("m"), dir, ErrorCode::kNoInput, "config.json");
  test::write_file(dir / "m" / "config.json",
                   "{\"model_type\": \"llama\", \"vocab_size\": \"big\"}");
  refuse(options("m"), dir, ErrorCode::kBadData, "vocab_size");
  test::write_file(dir / "m" / "config.json", config.dump());
  refuse(options("m", "int4"), dir, ErrorCode::kUsage, "int4");

  const std::string weights = test::read_file(dir / "m" / "model.safetensors");
  test::write_file(dir / "m" / "model.safetensors", weights.substr(0, weights.size() - 100));
  refuse(options("m"), dir, ErrorCode::kBadData, "model.safetensors");
  test::write_file(dir / "m" / "model.safetensors", weights);
  convert::ImportOptions device = options("m");
  device.device = "sparc";
  refuse(device, dir, ErrorCode::kUsage, "sparc");
  convert::ImportOptions head = options("m");
  head.quantize_head = true;
  refuse(head, dir, ErrorCode::kUsage, "--quantize_head");
  convert::ImportOptions pad = options("m");
  pad.pad_token_id = -1;
  refuse(pad, dir, ErrorCode::kUsage, "--pad_token_id");
  refuse(test::import_options(dir / "m" / "model.safetensors", dir / "out"), dir, ErrorCode::kUsage,
         "give the folder");

  import_model(options("m"));
  refuse(options("m"), dir, ErrorCode::kUsage, "exists");
  refuse(options("out"), dir, ErrorCode::kUsage, "out");  // output is input
  refuse(test::import_options(dir / "out", dir / "again"), dir, ErrorCode::kUsage,
         "LoongIR folder already");
}

TEST_CASE("--overwrite replaces an earlier output and nothing else") {
  const test::TempDir dir;
  convert::ImportOptions options = test::import_options(checkpoint("llama2"), dir / "m");
  import_model(options);
  options.overwrite = true;
  options.quantize = "fp32";
  import_model(options);
  CHECK(ir::Reader(dir / "m").model().quantize == "fp32");
  std::filesystem::create_directories(dir / "precious");
  test::write_file(dir / "precious" / "thesis.txt", "x");
  options.output_path = dir / "precious";
  refuse(options, dir, ErrorCode::kUsage, "not replaced");
  CHECK(test::read_file(dir / "precious" / "thesis.txt") == "x");
  // An output that contains the input would take it along.
  test::write_checkpoint(dir / "m" / "inner", test::load_tensors(checkpoint("llama2")),
                         test::load_config(checkpoint("llama2")));
  options.input_path = dir / "m" / "inner";
  options.output_path = dir / "m";
  refuse(options, dir, ErrorCode::kUsage, "contains the input");
}

TEST_CASE("the label names the family only where nothing else does") {
  const test::TempDir dir;
  Json config = test::load_config(checkpoint("llama2"));
  config.erase("model_type");
  test::write_checkpoint(dir / "m", test::load_tensors(checkpoint("llama2")), config);
  refuse(test::import_options(dir / "m", dir / "out"), dir, ErrorCode::kBadData, "model_type");
  convert::ImportOptions options = test::import_options(dir / "m", dir / "out");
  options.model_name = "llama-2-tiny";
  const convert::ImportReport report = import_model(options);
  CHECK(report.family == "llama");
  CHECK(report.model_name == "llama-2-tiny");
  CHECK(import_model(test::import_options(checkpoint("llama2"), dir / "named")).model_name ==
        "checkpoint");
}

namespace {

// A golden checkpoint as a GGUF file, as llama.cpp's converter makes it: in architecture llama the
// rows of q and k (and of their biases) stand in pairs.
std::string golden_as_gguf(uint32_t type, const std::string& family = "llama2") {
  const std::map<std::string, std::string> names = {
      {"input_layernorm", "attn_norm"},    {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},      {"self_attn.o_proj", "attn_output"},
      {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},
      {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  const formats::HfConfig config = formats::read_hf_config(checkpoint(family) / "config.json");
  const std::string arch = config.model_type;
  const auto number = [](int64_t value) { return static_cast<uint32_t>(value); };
  test::GgufBuilder b;
  b.text("general.architecture", arch);
  b.u32(arch + ".context_length", number(config.max_position_embeddings));
  b.u32(arch + ".embedding_length", number(config.hidden_size));
  b.u32(arch + ".block_count", number(config.num_hidden_layers));
  b.u32(arch + ".feed_forward_length", number(config.intermediate_size));
  b.u32(arch + ".attention.head_count", number(config.num_attention_heads));
  b.u32(arch + ".attention.head_count_kv", number(config.num_key_value_heads));
  b.u32(arch + ".attention.key_length", number(config.head_dim));
  b.f32(arch + ".attention.layer_norm_rms_epsilon", static_cast<float>(config.rms_norm_eps));
  b.f32(arch + ".rope.freq_base", static_cast<float>(config.rope.theta));
  if (config.rope.type == "linear") {
    b.text(arch + ".rope.scaling.type", "linear");
    b.f32(arch + ".rope.scaling.factor", static_cast<float>(config.rope.factor));
  }
  for (const test::MadeTensor& tensor : test::load_tensors(checkpoint(family))) {
    std::string name = tensor.name == "model.embed_tokens.weight" ? "token_embd.weight"
                       : tensor.name == "model.norm.weight"       ? "output_norm.weight"
                       : tensor.name == "lm_head.weight"          ? "output.weight"
                                                                  : "";
    if (name.empty()) {
      const std::string rest = tensor.name.substr(13);  // "model.layers."
      const size_t dot = rest.find('.'), kind = rest.rfind('.');
      name = "blk." + rest.substr(0, dot) + "." + names.at(rest.substr(dot + 1, kind - dot - 1)) +
             rest.substr(kind);
    }
    std::vector<uint8_t> bytes = tensor.bytes;
    if (arch == "llama" &&
        (name.find("attn_q.") != std::string::npos || name.find("attn_k.") != std::string::npos)) {
      // W.view(heads, 2, head_dim / 2, in).swap(1, 2)
      const size_t rows = static_cast<size_t>(tensor.shape[0]), row = bytes.size() / rows;
      const size_t head_dim = static_cast<size_t>(config.head_dim);
      for (size_t r = 0; r < rows; ++r) {
        const size_t half = r % head_dim / (head_dim / 2), pair = r % (head_dim / 2);
        std::memcpy(bytes.data() + (r / head_dim * head_dim + 2 * pair + half) * row,
                    tensor.bytes.data() + r * row, row);
      }
    }
    if (type == 0) {  // bf16 to fp32: two zero bytes below
      std::vector<uint8_t> wide;
      for (size_t i = 0; i < bytes.size(); i += 2)
        wide.insert(wide.end(), {0, 0, bytes[i], bytes[i + 1]});
      bytes = wide;
    }
    b.tensor(name, type, tensor.shape, bytes);
  }
  return b.bytes();
}

}  // namespace

TEST_CASE("GGUF: rows come back in Hugging Face's order, in every family") {
  for (const std::string family : {"llama2", "llama_bias", "smollm2", "qwen2", "qwen3"}) {
    CAPTURE(family);
    for (uint32_t type : {0u, 30u}) {
      const test::TempDir dir;
      test::write_file(dir / "m.gguf", golden_as_gguf(type, family));
      const convert::ImportReport report =
          import_model(test::import_options(dir / "m.gguf", dir / "ir"));
      CHECK(report.source_format == "gguf");
      CHECK(report.model_name == "m");
      convert::export_model(test::export_options(dir / "ir", dir / "hf"));
      const auto got = formats::open_tensor_source(dir / "hf"),
                 want = formats::open_tensor_source(checkpoint(family));
      test::check_same_checkpoint(*want, *got);
      // The same mathematics.
      const formats::HfConfig a = formats::read_hf_config(dir / "hf" / "config.json"),
                              b = formats::read_hf_config(checkpoint(family) / "config.json");
      CHECK(a.raw.get_string("torch_dtype", "") == "bfloat16");
      CHECK(a.model_type == b.model_type);
      CHECK(a.architecture == b.architecture);
      CHECK(a.head_dim == b.head_dim);
      CHECK(a.num_key_value_heads == b.num_key_value_heads);
      CHECK(a.rms_norm_eps == b.rms_norm_eps);
      CHECK(a.tie_word_embeddings == b.tie_word_embeddings);
      CHECK(a.attention_bias == b.attention_bias);
      CHECK(a.mlp_bias == b.mlp_bias);
      CHECK(a.rope.to_json() == b.rope.to_json());
    }
  }
}

TEST_CASE("GGUF: a label of the family that its architecture stands for as well") {
  const test::TempDir dir;
  test::write_file(dir / "m.gguf", golden_as_gguf(30));
  convert::ImportOptions options = test::import_options(dir / "m.gguf", dir / "ir");
  options.model_name = "Mistral-7B-v0.3";  // its files are of architecture llama
  CHECK(import_model(options).family == "llama");
  options.model_name = "Qwen2.5-7B";
  options.output_path = dir / "other";
  refuse(options, dir, ErrorCode::kUsage, "names the family qwen2");
}

TEST_CASE("GGUF: what does not fit is refused by name") {
  const test::TempDir dir;
  std::string bytes = golden_as_gguf(30);
  bytes.replace(bytes.find("blk.1.ffn_up.weight"), 19, "blk.9.ffn_up.weight");
  test::write_file(dir / "m.gguf", bytes);
  refuse(test::import_options(dir / "m.gguf", dir / "ir"), dir, ErrorCode::kBadData,
         "blk.1.ffn_up.weight");
  test::GgufBuilder other;
  other.text("general.architecture", "wombat");
  test::write_file(dir / "w.gguf", other.bytes());
  refuse(test::import_options(dir / "w.gguf", dir / "ir"), dir, ErrorCode::kBadData, "wombat");
}

namespace {

// The real model's file: LOONGFORGE_TEST_GGUF, or build/smollm2 beside the source tree.
std::filesystem::path smollm2_gguf() {
  if (const char* env = std::getenv("LOONGFORGE_TEST_GGUF"); env != nullptr && *env != '\0')
    return env;
  const std::filesystem::path beside = test::source_dir().parent_path() / "build" / "smollm2";
  if (!std::filesystem::is_directory(beside)) return {};
  for (const auto& entry : std::filesystem::directory_iterator(beside)) {
    if (entry.path().extension() == ".gguf") return entry.path();
  }
  return {};
}

}  // namespace

TEST_CASE("SmolLM2-135M: every weight has the sum and norm of the reference") {
  const std::filesystem::path gguf = smollm2_gguf(), reference = test::shared_dir() / "golden" /
                                                                 "smollm2-135m" / "reference.json";
  if (gguf.empty() || test::shared_dir().empty() || !std::filesystem::exists(reference)) {
    std::cout << "SKIPPED: SmolLM2-135M needs its GGUF (LOONGFORGE_TEST_GGUF) and the shared "
                 "references\n";
    return;
  }
  const test::TempDir dir;
  import_model(test::import_options(gguf, dir / "ir", "fp32"));
  const ir::Reader reader(dir / "ir");
  const Json json = support::read_json(reference.string());
  const Json::Object& weights = json.at("weights_shape_sum_l2").as_object();
  CHECK(weights.size() == 272);
  for (const auto& [name, expected] : weights) {
    CAPTURE(name);
    const ir::TensorEntry* entry = reader.model().find_tensor(name);
    REQUIRE(entry != nullptr);
    Json shape = Json::array();
    for (int64_t extent : entry->shape) shape.push_back(extent);
    CHECK(shape == expected.as_array()[0]);
    double sum = 0, squares = 0;
    for (float value : reader.read_f32(name)) {
      sum += double{value};
      squares += double{value} * double{value};
    }
    CHECK(sum == doctest::Approx(expected.as_array()[1].as_double()).epsilon(1e-6));
    CHECK(std::sqrt(squares) == doctest::Approx(expected.as_array()[2].as_double()).epsilon(1e-9));
  }
  // The configuration is the reference's where it has the key.
  for (const auto& [key, value] : json.at("config").as_object()) {
    const Json* ours = reader.model().config.find(key);
    if (ours == nullptr || ours->is_null()) continue;
    CAPTURE(key);
    if (value.is_number()) CHECK(ours->as_double() == doctest::Approx(value.as_double()));
  }
}

TEST_CASE("import: a torch file gives the model that its safetensors give") {
  const test::TempDir dir;
  std::vector<std::pair<std::string, std::string>> items, storages;
  for (const test::MadeTensor& tensor :
       test::load_tensors(test::model_dir("llama2") / "checkpoint")) {
    REQUIRE(tensor.dtype == DType::kBF16);
    const std::string key = std::to_string(storages.size());
    std::string bytes(tensor.bytes.begin(), tensor.bytes.end());
    std::vector<int64_t> stride(tensor.shape.size(), 1);
    if (tensor.shape.size() == 2) stride[0] = tensor.shape[1];
    if (tensor.name.find("up_proj") != std::string::npos) {  // kept transposed
      const auto rows = static_cast<size_t>(tensor.shape[0]),
                 cols = static_cast<size_t>(tensor.shape[1]);
      for (size_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < cols; ++c)
          std::copy_n(tensor.bytes.begin() + static_cast<ptrdiff_t>(2 * (r * cols + c)), 2,
                      bytes.begin() + static_cast<ptrdiff_t>(2 * (c * rows + r)));
      }
      stride = {1, tensor.shape[0]};
    }
    const auto elements = static_cast<int64_t>(tensor.bytes.size() / 2);
    items.emplace_back(
        tensor.name, test::pickle_tensor(test::pickle_storage("BFloat16Storage", key, elements), 0,
                                         tensor.shape, stride));
    storages.emplace_back(key, std::move(bytes));
  }
  items.emplace_back(
      "model.layers.0.self_attn.rotary_emb.inv_freq",
      test::pickle_tensor(test::pickle_storage("FloatStorage", "old", 4), 0, {4}, {1}));
  storages.emplace_back("old", std::string(16, '\0'));
  std::filesystem::create_directories(dir / "in");
  test::write_file(dir / "in/pytorch_model.bin",
                   test::torch_bytes(test::pickle_of(items), storages));
  std::filesystem::copy(test::model_dir("llama2") / "checkpoint/config.json",
                        dir / "in/config.json");
  const convert::ImportReport report =
      import_model(test::import_options(dir / "in", dir / "torch"));
  CHECK(report.source_format == "torch");
  CHECK(report.ignored.size() == 1);
  convert::export_model(test::export_options(dir / "torch", dir / "got"));
  test::check_same_checkpoint(
      *formats::open_tensor_source(test::model_dir("llama2") / "checkpoint"),
      *formats::open_tensor_source(dir / "got"));
}
