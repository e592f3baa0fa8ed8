// Import: a Hugging Face folder or a GGUF file becomes a LoongIR folder (man/loongir.5).
//
// Streams stripes of rows: memory does not grow with the model. The folder appears under its final
// name complete or not at all. Bad input ends in one Error that names file and tensor, before
// anything is written where the table allows it. Thread-safety: functions without shared state; one
// import at a time per output path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/api.h"
#include "quant/loongamp.h"

namespace loongforge::convert {

// Called from the importing thread, after every stripe (a few MB); bytes are those of the source
// (import) or of the target (export).
struct Progress {
  uint64_t done_bytes = 0, total_bytes = 0;
  std::string_view tensor;  // the one under way
};
using ProgressCallback =
    std::function<void(const Progress&)>;  // may be empty; an exception it throws ends the run

struct ImportOptions {
  // A label; names the family only where config.json has no model_type. Empty: the input's name,
  // which names no family.
  std::string model_name;
  std::filesystem::path input_path;   // a Hugging Face folder, or a .gguf file
  std::filesystem::path output_path;  // the LoongIR folder
  std::string quantize = "fp8";  // "nf4", "fp8", "bf16", "fp32": how the linear weights are stored
  std::string device;            // "x86_64", "loongarch64"; empty: the machine's own
  std::filesystem::path tokenizer_path;  // folder or tokenizer.json or GGUF; empty: the model's own
  std::optional<int64_t> pad_token_id;   // HF id; wins over config and tokenizer
  bool quantize_head = false;            // the head in FP8 as well
  std::vector<quant::AmpRule> quantize_overrides;  // stand before the policy of quantize
  bool overwrite = false;                          // replace an existing output_path
  bool dry_run = false;                            // plan, check and report; write nothing
  int threads = 1;                                 // of the quantiser and the casts
};

// A weight of a linear node that is not stored as `quantize` asks, and why.
struct KeptTensor {
  std::string tensor, dtype, reason;
};

struct ImportReport {
  std::string family, model_name, device, quantize;
  std::string source_format;  // "safetensors", "torch", "gguf"
  int64_t parameters = 0;     // elements, tied tensors counted once
  int64_t tensors = 0, aliases = 0, nodes = 0, blocks = 0;
  int64_t linears = 0, linears_fp8 = 0, linears_nf4 = 0;  // linear weights; in FP8; in NF4
  int64_t linears_as_stored = 0;  // of those in NF4: with the codes of the source
  uint64_t source_bytes = 0;      // tensor bytes read
  uint64_t stored_bytes = 0;      // bytes of the weight files
  int64_t weight_files = 0;
  int64_t nan_elements = 0;           // NaN among the elements quantised
  std::vector<KeptTensor> kept;       // in table order
  std::vector<std::string> ignored;   // source tensors that no node needs (buffers of old files)
  std::vector<std::string> warnings;  // one line each, for stderr
  bool has_tokenizer = false;
  std::optional<int64_t> pad_token_id;  // HF id, as resolved
  std::vector<std::string> files;       // names inside output_path; empty after a dry run
};

LF_API ImportReport import_model(const ImportOptions& options,
                                 const ProgressCallback& progress = {});

}  // namespace loongforge::convert
