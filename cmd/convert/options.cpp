#include "cmd/convert/options.h"

#include "base/error.h"
#include "base/paths.h"
#include "cmd/commands.h"

namespace loongforge::cmd {
namespace {

using cli::OptionType;

constexpr const char* kModel = "Model";
constexpr const char* kImport = "Import (a Hugging Face folder or a GGUF file becomes LoongIR)";
constexpr const char* kExport =
    "Export (LoongIR becomes a Hugging Face or PEFT folder, or a GGUF file)";
constexpr const char* kRun = "Run";

constexpr cli::Option kTable[] = {
    {"input-path", OptionType::kPath, nullptr, "PATH", kModel,
     "import: a Hugging Face folder or a .gguf file; export: a LoongIR folder or a checkpoint"},
    {"output-path", OptionType::kPath, nullptr, "FOLDER", kModel,
     "the folder to make; gguf: the file, *.gguf"},
    {"overwrite", OptionType::kFlag, "false", nullptr, kModel,
     "replace an earlier output; a folder that holds anything else is refused"},

    {"model-name", OptionType::kString, nullptr, "NAME", kImport,
     "label written into the model (default: the name of the input); names the family where "
     "config.json does not"},
    {"quantize", OptionType::kChoice, "fp8", "nf4|fp8|bf16|fp32", kImport,
     "how linear weights are stored"},
    {"quantize_head", OptionType::kFlag, "false", nullptr, kImport,
     "store the head in FP8 as well"},
    {"quantize_override", OptionType::kList, nullptr, "PATTERN=nf4|fp8|bf16|fp32,...", kImport,
     "store tensors that match otherwise, as *.down_proj=bf16"},
    {"device", OptionType::kChoice, nullptr, "loongarch64|x86_64", kImport,
     "whose page size the files are laid out for (default: this machine); both can be read "
     "anywhere"},
    {"tokenizer_path", OptionType::kPath, nullptr, "PATH", kImport,
     "a folder, tokenizer.json or GGUF file to take the tokenizer from (default: the model's own)"},
    {"pad_token_id", OptionType::kInt, nullptr, "[0,2147483647]", kImport,
     "padding id, counted over what configuration and tokenizer say"},

    {"export", OptionType::kChoice, nullptr, "gguf|hf|peft", kExport, "the form to export to"},
    {"adapter", OptionType::kPath, nullptr, "PATH", kExport,
     "a PEFT folder, or a checkpoint that holds one"},
    {"merge", OptionType::kFlag, "false", nullptr, kExport,
     "hf, gguf: add the adapter to the weights"},
    {"dtype", OptionType::kChoice, nullptr, "bf16|fp16|fp32|fp8|q8_0", kExport,
     "type of the exported weights: hf bf16, fp8 or fp32, gguf bf16, fp16, fp32 or q8_0 "
     "(default: bf16; peft, and hf of imported FP8: as they are)"},
    {"max-shard-size", OptionType::kString, "5GB", "SIZE", kExport,
     "hf: start another file at this size"},

    {"dry_run", OptionType::kFlag, "false", nullptr, kRun,
     "check the input and report; write nothing"},
    {"json", OptionType::kFlag, "false", nullptr, kRun, "print the report as one JSON object"},
};

}  // namespace

constinit const cli::Command convert_command = {
    "convert", summary_of("convert"),
    "--input-path P --output-path O [--quantize nf4|fp8|bf16|fp32] [options]\n"
    "       loongforge convert --export gguf|hf|peft --input-path O --output-path H [--adapter "
    "CKPT "
    "[--merge]] [options]",
    kTable};

convert::ImportOptions import_options(const cli::Options& options, int threads) {
  options.refuse_given({"adapter", "merge", "dtype", "max-shard-size"}, "counts for an export only",
                       "add --export hf, gguf or peft, or leave it out");
  convert::ImportOptions result;
  result.input_path = options.require("input-path", "name a Hugging Face folder or a .gguf file");
  result.output_path = options.require("output-path", "name the LoongIR folder to make");
  result.model_name = options.text("model-name");
  if (result.model_name.empty()) {
    const std::filesystem::path name = absolute_path(result.input_path).filename();
    result.model_name = (name.extension() == ".gguf" ? name.stem() : name).string();
  }
  result.quantize = options.text("quantize");
  result.device = options.text("device");
  result.tokenizer_path = options.text("tokenizer_path");
  if (options.has("pad_token_id")) result.pad_token_id = options.integer("pad_token_id");
  result.quantize_head = options.flag("quantize_head");
  result.quantize_overrides =
      quant::parse_amp_overrides(options.text("quantize_override"), "quantize_override");
  result.overwrite = options.flag("overwrite");
  result.dry_run = options.flag("dry_run");
  result.threads = threads;
  return result;
}

convert::ExportOptions export_options(const cli::Options& options, int threads) {
  options.refuse_given({"quantize", "quantize_head", "quantize_override", "device",
                        "tokenizer_path", "pad_token_id", "model-name"},
                       "counts for an import only",
                       "leave it out with --export; --dtype chooses the type of exported weights");
  convert::ExportOptions result;
  result.format = options.text("export");
  result.input_path = options.require("input-path", "name a LoongIR folder or a checkpoint");
  result.output_path = options.require("output-path", "name the folder or file to make");
  result.adapter = options.text("adapter");
  result.merge = options.flag("merge");
  result.dtype = options.text("dtype");
  result.max_shard_bytes =
      convert::parse_byte_size(options.text("max-shard-size"), "--max-shard-size");
  result.overwrite = options.flag("overwrite");
  result.dry_run = options.flag("dry_run");
  result.threads = threads;
  if (result.format != "hf")
    options.refuse_given({"max-shard-size"}, "counts for --export hf only",
                         "an adapter or a GGUF file is one file");
  return result;
}

}  // namespace loongforge::cmd
