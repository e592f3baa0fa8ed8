// The table of `loongforge convert` fills the import's and the export's options; its defaults are
// those that they state.
#include <doctest/doctest.h>

#include "cli/options_parse.h"
#include "cmd/commands.h"
#include "cmd/convert/options.h"

namespace loongforge::cmd {
namespace {

cli::Options parsed(std::vector<const char*> words) {
  static const std::vector<cli::Option> table = cli::full_table(convert_command);
  return cli::parse_options(table, words, [](const char*) -> const char* { return nullptr; })
      .options;
}

TEST_CASE("import: defaults and the label taken from the input's name") {
  const convert::ImportOptions stated;
  const convert::ImportOptions got =
      import_options(parsed({"--input-path", "models/tiny.gguf", "--output-path", "o"}), 3);
  CHECK(got.input_path == "models/tiny.gguf");
  CHECK(got.output_path == "o");
  CHECK(got.model_name == "tiny");
  CHECK(got.quantize == stated.quantize);
  CHECK(got.device == stated.device);
  CHECK(got.tokenizer_path == stated.tokenizer_path);
  CHECK(got.pad_token_id == stated.pad_token_id);
  CHECK(got.quantize_head == stated.quantize_head);
  CHECK(got.overwrite == stated.overwrite);
  CHECK(got.dry_run == stated.dry_run);
  CHECK(got.threads == 3);
  CHECK(import_options(parsed({"--input-path", "models/SmolLM2-1.7B/", "--output-path", "o"}), 1)
            .model_name == "SmolLM2-1.7B");
}

TEST_CASE("import: every flag reaches its field, in the description's spelling") {
  const convert::ImportOptions got = import_options(
      parsed({"--model-name", "chatglm-6b", "--input-path", "i", "--output-path", "o", "--quantize",
              "fp8", "--device", "loongarch64", "--tokenizer_path", "t", "--pad_token_id", "2",
              "--quantize_head", "--quantize-override", "*.q_proj=bf16,*.0.*=fp32", "--overwrite",
              "--dry-run"}),
      1);
  CHECK(got.model_name == "chatglm-6b");
  CHECK(got.device == "loongarch64");
  CHECK(got.tokenizer_path == "t");
  CHECK(got.pad_token_id == 2);
  CHECK(got.quantize_head);
  REQUIRE(got.quantize_overrides.size() == 2);
  CHECK(got.quantize_overrides[1].pattern == "*.0.*");
  CHECK(got.quantize_overrides[1].storage == quant::Storage::kF32);
  CHECK(got.overwrite);
  CHECK(got.dry_run);
}

TEST_CASE("export: defaults and fields") {
  const convert::ExportOptions stated;
  const convert::ExportOptions plain =
      export_options(parsed({"--export", "hf", "--input-path", "i", "--output-path", "o"}), 2);
  CHECK(plain.format == "hf");
  CHECK(plain.dtype == stated.dtype);
  CHECK(plain.max_shard_bytes == stated.max_shard_bytes);
  CHECK(plain.merge == stated.merge);
  CHECK(plain.threads == 2);
  const convert::ExportOptions full = export_options(
      parsed({"--export", "hf", "--input-path", "i", "--output-path", "o", "--adapter", "a",
              "--merge", "--dtype", "fp32", "--max-shard-size", "2GiB", "--overwrite"}),
      1);
  CHECK(full.adapter == "a");
  CHECK(full.merge);
  CHECK(full.dtype == "fp32");
  CHECK(full.max_shard_bytes == uint64_t{2} << 30);
  CHECK(full.overwrite);
  CHECK(export_options(parsed({"--export", "peft", "--input-path", "i", "--output-path", "o",
                               "--adapter", "a"}),
                       1)
            .format == "peft");
  const convert::ExportOptions gguf =
      export_options(parsed({"--export", "gguf", "--input-path", "i", "--output-path", "o.gguf",
                             "--dtype", "q8_0"}),
                     1);
  CHECK(gguf.format == "gguf");
  CHECK(gguf.dtype == "q8_0");
}

}  // namespace
}  // namespace loongforge::cmd
